"""Inputs and expected outputs of operators that several programs test, written by us from the operators' definitions."""
