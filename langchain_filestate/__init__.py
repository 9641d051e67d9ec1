"""File tools for LangChain and LangGraph agents that know what the agent has read."""
