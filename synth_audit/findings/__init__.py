"""What audits and gates may say: measurements, outcomes, verdicts."""
