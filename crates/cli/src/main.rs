//! The fulmar command.
fn main() {}
