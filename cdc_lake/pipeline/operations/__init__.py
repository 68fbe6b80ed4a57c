"""Operations that assets and commands share: land, apply, verify, reset, resnapshot, migrate."""
