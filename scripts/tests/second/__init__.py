"""A second implementation of a session's client, written from docs/protocol alone: what it cannot read there, the pages do not say."""
