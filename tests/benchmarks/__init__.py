"""What the package costs, beside the least that the same work can cost: `python -m tests.benchmarks [--quick]`."""
