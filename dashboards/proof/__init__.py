"""The place *Proof*: certificates and the audit log."""
