"""The fidelity audits."""
