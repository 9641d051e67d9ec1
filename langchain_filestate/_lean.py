"""What LangChain does around every call of a tool, done with less work.

`BaseTool.run` finds out from signatures and annotations, at each call, which arguments a tool takes, and dumps the
validated arguments to see their names: with them the runtime, and so all messages of the state, so that each call of a
long thread took longer than the one before. `ToolNode` copies the command that a tool returns, to any depth. None of
that is needed here: all arguments are fields of one model, and nobody else holds what a call has just made.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from langchain_core.tools import BaseTool
from langchain_core.tools.base import FILTERED_ARGS
from langgraph.types import Command
from pydantic import ValidationError

from langchain_filestate._arguments import Arguments  # noqa: TC001  pydantic asks for it
from langchain_filestate._running import wrong

if TYPE_CHECKING:
    from typing import Self

_NOT_TOLD = frozenset({"runtime", *FILTERED_ARGS})
"""Arguments that are not the model's; callbacks are not given them."""


class LeanTool(BaseTool):
    """A tool whose arguments are the fields of `args_schema`, and whose `_run` takes whatever it is given.

    `_run` is also given `call_id`, which LangChain gives only to tools that cannot be called without one; and, in place
    of wrong arguments, `refused` with the refusal, since LangChain's own message would have no artifact.
    """

    args_schema: type[Arguments]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # LangChain evaluates the annotations at each call, to look for a parameter that takes the configuration, and
        # puts the signature together from the code.
        for name in {"_run", "_arun"} & vars(cls).keys():
            run = vars(cls)[name]
            run.__no_type_check__ = True
            run.__signature__ = inspect.signature(run)

    def _filter_injected_args(self, tool_input: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in tool_input.items() if name not in _NOT_TOLD}

    def _to_args_and_kwargs(
        self, tool_input: str | dict[str, Any], tool_call_id: str | None
    ) -> tuple[tuple[str, ...], dict[str, Any]]:
        given = {} if isinstance(tool_input, str) else tool_input
        try:
            arguments = dict(self.args_schema.model_validate(given))
        except ValidationError as error:
            arguments = {"runtime": given.get("runtime"), "refused": wrong(error)}
        return (), {**arguments, "call_id": tool_call_id}


class Update(Command[Any]):
    """The state update of one call, which nobody else holds: a copy of it is the same."""

    __slots__ = ()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self
