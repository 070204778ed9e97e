"""Commands of the shell, by what they are for; `synth_audit.cli` puts them together."""
