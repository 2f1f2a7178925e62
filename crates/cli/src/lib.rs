//! The front: arguments, commands, terminal.
