//! Verdicts and alarms of a gateway as lines of text, for `fulmar status` and `fulmar top`.

use super::lines::{Line, Paint, Style, wrapped};
use serde::Deserialize;

/// The grade of a link, an alarm or a gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Grade {
    #[default]
    Good,
    Poor,
    Bad,
}

impl Grade {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Poor => "poor",
            Self::Bad => "BAD",
        }
    }

    pub(super) const fn style(self) -> Style {
        match self {
            Self::Good => Style::Good,
            Self::Poor => Style::Doubtful,
            Self::Bad => Style::Bad,
        }
    }
}

/// The words on a gateway as a whole, behind its name: its grade, and whether it has no keys.
pub(super) fn overall(line: Line, grade: Grade, is_unprotected: bool) -> Line {
    let line = line
        .add(Style::Usual, " is ")
        .add(grade.style(), grade.word());
    if is_unprotected {
        line.add(Style::Usual, ", ")
            .add(Style::Bad, "NOT PROTECTED")
    } else {
        line
    }
}

/// A link in one sentence.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct ShownVerdict {
    pub(super) grade: Grade,
    pub(super) text: String,
}

/// A rule that holds.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ShownAlarm {
    pub(super) grade: Grade,
    pub(super) peer: Option<String>,
    pub(super) rule: String,
    pub(super) text: String,
    pub(super) cause: String,
    pub(super) cure: String,
}

/// The width of the column of grades.
const GRADE: usize = 6;

/// Text behind a grade: its first line begins beside it, the further ones below.
pub(super) fn graded(
    grade: Grade,
    name: &str,
    text: &str,
    (width, paint): (usize, Paint),
    lines: &mut Vec<String>,
) {
    let head = Line::new(width, paint)
        .add(grade.style(), grade.word())
        .to(GRADE);
    let head = head.add(Style::Strong, name);
    let head = if name.is_empty() {
        head
    } else {
        head.add(Style::Usual, "  ")
    };
    let further_width = width.saturating_sub(GRADE) + super::lines::GAP;
    let (first, further) = wrapped(text, width.saturating_sub(head.columns), further_width);
    lines.push(head.add(Style::Usual, &first).done());
    for text in further {
        lines.push(
            Line::new(width, paint)
                .to(GRADE)
                .add(Style::Usual, &text)
                .done(),
        );
    }
}

/// An alarm with its cause and cure.
pub(super) fn alarm(alarm: &ShownAlarm, look: (usize, Paint), lines: &mut Vec<String>) {
    let ShownAlarm {
        grade,
        peer,
        rule,
        text,
        cause,
        cure,
    } = alarm;
    let name = rule.replace('_', " ");
    let name = match peer {
        Some(peer) => format!("{peer}, {name}"),
        None => name,
    };
    let text = format!("{text}. Cause: {cause}. Cure: {cure}.");
    graded(*grade, &name, &text, look, lines);
}
