//! Which lives of a peer are over: frames of theirs that were held up must not be believed again.

/// As many as fit before a hop's longest delay has passed, for any peer that is not broken.
const FORMER_MAX: usize = 4;

/// The last few names of a peer's former lives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FormerLives<E> {
    names: [Option<E>; FORMER_MAX],
    next: usize,
}

impl<E: Copy + PartialEq> Default for FormerLives<E> {
    fn default() -> Self {
        Self {
            names: [None; FORMER_MAX],
            next: 0,
        }
    }
}

impl<E: Copy + PartialEq> FormerLives<E> {
    /// The life `name` is over.
    pub(crate) fn push(&mut self, name: E) {
        if let Some(place) = self.names.get_mut(self.next) {
            *place = Some(name);
        }
        self.next = (self.next + 1) % FORMER_MAX;
    }

    /// Whether the life `name` is over.
    pub(crate) fn contains(&self, name: E) -> bool {
        self.names.contains(&Some(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_four_lives_are_remembered_and_not_a_fifth() {
        let mut former = FormerLives::default();
        for name in 0..5 {
            former.push(name);
        }
        assert!(!former.contains(0));
        assert!((1..5).all(|name| former.contains(name)));
    }
}
