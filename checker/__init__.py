"""`proof`: evidence that cannot be made up afterwards, and the program that checks it.

What an experiment saw is written down as a :class:`~ldfi.checker.record.RunRecord` when it ends.
The records of a service are the leaves of a Merkle tree (RFC 9162, as certificate transparency has
it), whose head is signed with a time. Whoever checks needs a public key, and trusts neither the
service nor its verdicts: :mod:`ldfi.checker.verify` asks the tree whether a record was there, and
works out the evidence anew (:mod:`ldfi.checker.statistics`).

Nothing of ours is imported here, neither the service nor the solver. Signatures need the extra
``ldfi[signing]``; the rest is the standard library.
"""
