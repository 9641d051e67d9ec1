"""How much media one conversation may hold: older pictures and files give way to new ones, in place.

A provider takes only so many pictures, and so many bytes, in one request, and rejects every later turn of a
conversation that holds more. `FileStateMiddleware` has the conversation in hand: before a request gets too large, the
oldest pictures and files that these tools have shown become a note, in the same message, under the same id and for the
same call, so that nothing loses its other half. Those that the user gave stay.

They give way to half of what may be there, and not to just enough: the beginning of a request is what providers cache,
and with each picture after the limit it would be another one. What the last step brought stays as long as it fits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, ToolMessage

from langchain_filestate import _past
from langchain_filestate._rules import plain
from langchain_filestate.state import MARK, media_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_filestate._policy import Limits


def without_old_media(messages: Sequence[Any], limits: Limits) -> dict[str, ToolMessage]:
    """Say which messages are to be replaced, and by what.

    Args:
        messages: What the model is to be sent.
        limits: How much is allowed.

    Returns:
        By id; empty if all may stay.
    """
    holding = [(at, media_in(messages[at])) for at in _past.blocks(messages)]
    holding = [(at, found) for at, found in holding if found[0]]
    count, size = (sum(found[n] for _, found in holding) for n in (0, 1))
    most, most_size = limits.max_thread_media, limits.max_thread_media_bytes
    if count <= most and size <= most_size:
        return {}
    last = max((at for at, message in enumerate(messages) if isinstance(message, AIMessage)), default=-1)
    gone: dict[str, ToolMessage] = {}
    for at, (blocks, characters) in holding:
        new = at > last
        if count <= (most if new else most // 2) and size <= (most_size if new else most_size // 2):
            break
        message = messages[at]
        if isinstance(message, ToolMessage) and message.id is not None and MARK in message.additional_kwargs:
            gone[message.id] = message.model_copy(update={"content": _note(message)})
            count, size = count - blocks, size - characters
    return gone


def _note(message: ToolMessage) -> str:
    artifact: Mapping[str, Any] = message.artifact if isinstance(message.artifact, dict) else {}
    where = plain(str(artifact.get("file_path", "the file")))
    note = f"(Taken out of the conversation, which held too much. Read {where} again to see it.)"
    return "\n\n".join(part for part in (message.text, note) if part)
