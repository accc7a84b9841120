"""Every alignment that a text claims, proved from the text itself.

Reading order: integer_terms, llvm_reader, alignment_claims.
"""
