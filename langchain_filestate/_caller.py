"""From what LangGraph injects into a tool to the `Call` that the use cases take: who calls, and from where."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from langgraph.errors import GraphBubbleUp

from langchain_filestate._call import Call
from langchain_filestate._records import State, merge_records
from langchain_filestate._running import SCRATCHPAD, in_graph, run_of
from langchain_filestate.errors import WiringError
from langchain_filestate.state import LEFT_OUT, Messages, channel_of, new_id, value_of

if TYPE_CHECKING:
    from langchain_filestate._call import Ask
    from langchain_filestate._editor import Editor
    from langchain_filestate._running import Spot

DEFAULT_AGENT = "main"


class _Booked(Mapping[str, Any]):
    """The records of calls outside any graph as they are when they are asked for: other threads make calls too."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def __getitem__(self, agent: str) -> Any:
        return self._caller.records[agent]

    def __iter__(self) -> Iterator[str]:
        return iter(self._caller.records)

    def __len__(self) -> int:
        return len(self._caller.records)


class Caller:
    """What the tools of one toolkit share: what carries out the calls, and for whom.

    A plain object, since a toolkit is a pydantic model, which is slow to ask for what is private to it.

    Args:
        editor: Carries out the calls.
        agent: Name under which records are kept; None: the name of the running agent, or "main".

    Attributes:
        records: The records of calls outside any graph; those of a graph are in its state.
    """

    def __init__(self, editor: Editor, agent: str | None) -> None:
        if agent is not None and not isinstance(agent, str):
            raise WiringError(f"agent takes a name, not {agent!r}.")
        self.editor, self.agent = editor, agent
        self.records: State = {}
        self._lock = threading.Lock()

    def agent_of(self, config: Mapping[str, Any] | None) -> str:
        """Under which name a run keeps its records.

        Args:
            config: The run's configuration; None outside a graph.
        """
        if self.agent is not None:
            return self.agent
        name = ((config or {}).get("metadata") or {}).get("lc_agent_name")
        return name if isinstance(name, str) and name else DEFAULT_AGENT

    def book(self, agent: str, records: Mapping[str, dict[str, Any]]) -> None:
        """Keep records of calls outside any graph."""
        with self._lock:
            self.records = merge_records(self.records, {agent: dict(records)})

    def call(self, tool: str, call_id: str | None, runtime: Any, spot: Spot) -> Call:
        """Who calls, and from where.

        Args:
            tool: Name of the tool.
            call_id: Id of the call; None if there is none.
            runtime: What LangGraph injected; None outside a graph.
            spot: Where the call stands in the conversation.

        Raises:
            WiringError: The graph's state lacks the channel, or no runtime arrives inside a running graph.
        """
        if runtime is None:
            return self._call_by_hand(tool, call_id)
        state = channel_of(runtime.state)
        if state is None:
            raise WiringError(
                "The graph's state has no channel for the read records. Inherit FileState beside MessagesState, "
                "or add FileStateMiddleware (or FileToolsMiddleware) to create_agent."
            )
        config = runtime.config or {}
        thread_id, checkpoint_id = run_of(runtime)
        return Call(
            tool,
            self.agent_of(config),
            new_id(),
            Messages(spot.messages, value_of(runtime.state, LEFT_OUT) or ()),
            state,
            thread_id=thread_id,
            checkpoint_id=checkpoint_id,
            message_id=spot.message_id,
            call_id=call_id,
            identity=spot.identity,
            place=spot.place(runtime),
            earlier=spot.earlier,
            changed=spot.changed,
            ask=self._asker(call_id, config, runtime.execution_info),
            emit=runtime.stream_writer,
            gives_way=self.editor.gives_way,
            reraise=(GraphBubbleUp,),
        )

    def _call_by_hand(self, tool: str, call_id: str | None) -> Call:
        if in_graph():
            raise WiringError(
                f"{tool} was called by hand inside a running graph, so it cannot see the state. "
                "Let a ToolNode run it, or add FileStateMiddleware to create_agent."
            )
        self._asker(call_id, {}, None)  # nobody can be asked: raises if somebody would have to be
        return Call(
            tool, self.agent_of(None), new_id(), Messages(None), _Booked(self), call_id=call_id, book=self.book
        )  # fmt: skip

    def _asker(self, call_id: str | None, config: Mapping[str, Any], info: Any) -> Ask | None:
        """Who is asked about a change; None if nobody is."""
        if self.editor.policy.approve is False:
            return None
        scratchpad = (config.get("configurable") or {}).get(SCRATCHPAD)
        if info is None or scratchpad is None:
            raise WiringError("approve asks by an interrupt: run the tools in a graph with a checkpointer.")
        from langchain_filestate._approval import Asker  # noqa: PLC0415  where somebody is asked

        return Asker(self.editor.history, info.task_id, scratchpad, call_id, self.editor.policy)
