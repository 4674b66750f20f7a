"""Archives of any size scored on Apache Beam, one file of results a shard.

A shard is some clips that one worker scores, by the path of
`audio-tf classify`, and one Parquet file of their scores. `planning` says
which clips are in which shard and writes that down first; a shard's file is
written whole or not at all. So a run that was killed goes on with the shards
that have no file, and whoever writes a shard twice writes the same.

Apache Beam and pyarrow are imported when they are used: `audio_tf[beam]`.
"""
