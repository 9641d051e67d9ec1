"""A model that follows a script, so that these notebooks need no key and no network."""

import itertools
import os

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult

_ids = itertools.count(1)


class ScriptedModel(BaseChatModel):
    """Says its lines one after the other: a text, a tool call, a list of them, or a function that gives one of these."""

    lines: list = []

    @property
    def _llm_type(self):
        return "scripted"

    def bind_tools(self, tools, **kwargs):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        line = self.lines.pop(0) if self.lines else "Done."
        if callable(line):
            line = line()
        calls = [line] if isinstance(line, dict) else line
        message = AIMessage(line) if isinstance(line, str) else AIMessage("", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=message)])


def call(name, **args):
    """A tool call."""
    return {"name": name, "args": args, "id": f"call_{next(_ids)}", "type": "tool_call"}


def read(path, **args):
    return call("read_file", file_path=path, **args)


def edit(path, old, new):
    return call("edit_file", file_path=path, old_string=old, new_string=new)


def write(path, content):
    return call("write_file", file_path=path, content=content)


def tell(messages):
    """Print a conversation, with paths relative to the working directory."""
    here = os.path.join(os.path.realpath("."), "")
    for message in messages:
        name = {"human": "user", "ai": message.name or "model"}.get(message.type, message.type)
        if message.type == "human" and "file_state" in message.additional_kwargs:
            name = "notice"
        if message.type == "tool" and message.status == "error":
            name = "REFUSED"
        for one in getattr(message, "tool_calls", ()):
            args = ", ".join(f"{key}={value!r}" for key, value in one["args"].items())
            print(f"{name:>8} | {one['name']}({args})".replace(here, ""))
        for number, line in enumerate(message.text.replace(here, "").splitlines()):
            print(f"{'' if number else name:>8} | {line}")
