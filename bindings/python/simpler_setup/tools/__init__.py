"""Commands that read the files of a run's diagnostics: `python -m simpler_setup.tools.NAME`."""
