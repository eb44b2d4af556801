//! The tables of the screen.

/// The table below the verdicts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Tab {
    #[default]
    Links,
    Flows,
    Figures,
    Decisions,
}

impl Tab {
    pub(super) const ALL: [Self; 4] = [Self::Links, Self::Flows, Self::Figures, Self::Decisions];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Links => "links",
            Self::Flows => "flows",
            Self::Figures => "figures",
            Self::Decisions => "decisions",
        }
    }
}
