//! What several link layers need: each part owns its state and its tests.

mod lives;
mod release;

pub(super) use lives::FormerLives;
pub(super) use release::{Placed, ReleaseWindow};
