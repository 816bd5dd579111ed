"""Jobs: crawls asked for, claimed, steered and watched over Redis, in the layout of ArchiveBot."""
