"""Long forms of tests, run by hand: `python -m tests.long COMMAND`. They print figures; the tests hold short forms."""
