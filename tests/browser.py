"""Pages in a real browser, headless: what it makes of them, and what they look like.

Each call starts one Chromium with a new, empty profile, no network, and a time after which it is ended; ended by the
id of the process group that was started here.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
SECONDS = 90
_FLAGS = (
    "--headless",
    "--no-sandbox",  # tests may run as root, in a container
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND",
)


def _run(page: Path, *flags: str) -> str:
    assert CHROMIUM is not None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [CHROMIUM, *_FLAGS, f"--user-data-dir={profile}", *flags, page.resolve().as_uri()],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            out, _ = process.communicate(timeout=SECONDS)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert process.returncode == 0
    return out.decode("utf-8")


def _theme(*, dark: bool) -> str:
    return f"--blink-settings=preferredColorScheme={0 if dark else 1}"


def dom(page: Path) -> str:
    """The page as the browser understood it."""
    return _run(page, "--dump-dom")


def shot(page: Path, image: Path, *, width: int = 1000, height: int = 1500, dark: bool = False) -> Path:
    """What the page looks like."""
    _run(page, _theme(dark=dark), f"--window-size={width},{height}", f"--screenshot={image}")
    return image
