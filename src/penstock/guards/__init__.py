"""Guards of the operator: rules, services and chat models that check calls before they are sent, and what was made."""
