"""What the compiler asks of the computer around it: files within bounds, private folders, processors, threads,
exit codes; and how texts are read as tokens.

Reading order: cached_property, escape, faults, exit_codes, files, identifiers, limits, bounded_io, json_parts,
digest, mapped, meanwhile, named_tuples, notices, cores, private_folder, shared_cache, object_cache, token_cursor,
answering.
"""
