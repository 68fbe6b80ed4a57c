"""Operations of commands, some shared with assets: land, apply, verify, reset, resnapshot, migrate."""
