//! A warning beside figures and claims.

use crate::claims::Checked;
use core::fmt;

/// Fewer runs for each point than the figures' own: verdicts are not to be relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FewRuns {
    /// The number of runs that were asked for.
    asked: usize,
    /// The least and the most runs that the figures have by themselves.
    own: (usize, usize),
}

impl fmt::Display for FewRuns {
    /// `3 runs a point instead of 10 to 100`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (asked, (least, most)) = (self.asked, self.own);
        let noun = if asked == 1 { "run" } else { "runs" };
        write!(f, "{asked} {noun} a point instead of {least}")?;
        if most > least {
            write!(f, " to {most}")?;
        }
        Ok(())
    }
}

impl FewRuns {
    /// The warning for families each of which has its `own` number of runs, when `asked` are made instead;
    /// `None` if these suffice.
    pub(crate) fn of(asked: Option<usize>, own: &[usize]) -> Option<Self> {
        let own = (*own.iter().min()?, *own.iter().max()?);
        asked
            .filter(|asked| *asked < own.1)
            .map(|asked| Self { asked, own })
    }

    /// The warning for two papers together.
    pub(crate) fn and(self, other: Self) -> Self {
        let ((least, most), (low, high)) = (self.own, other.own);
        Self {
            own: (least.min(low), most.max(high)),
            ..self
        }
    }

    /// The claim with the warning before its comment.
    pub(crate) fn told(self, claim: Checked) -> Checked {
        let comment = format!(
            "Few runs ({self}): the verdict is not to be relied on.\n{}",
            claim.comment
        );
        Checked { comment, ..claim }
    }
}
