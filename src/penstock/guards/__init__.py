"""Guards of the operator: rules and services that check what callers ask for, before anything is sent or held."""
