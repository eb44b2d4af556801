//! A table of which one line is chosen, cut to the width and height of a terminal.

use super::super::lines::{GAP, Line, Paint, Style};

/// The side of its column at which a text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
}

/// One text of a table.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    style: Style,
    text: String,
    align: Align,
}

impl Cell {
    pub(super) fn new(style: Style, text: &str, align: Align) -> Self {
        Self {
            style,
            text: text.to_owned(),
            align,
        }
    }

    /// The head of a column.
    pub(super) fn head(text: &str, align: Align) -> Self {
        Self::new(Style::Quiet, text, align)
    }

    fn wide(&self) -> usize {
        self.text.chars().count()
    }
}

/// The mark of the chosen line, and its place before the others.
const CHOSEN: &str = "> ";

/// The heads and so many rows that the chosen one is among them. The first column is cut where the others need the room.
pub(super) fn table(
    heads: &[Cell],
    rows: &[Vec<Cell>],
    (chosen, shown): (usize, usize),
    (width, paint): (usize, Paint),
) -> Vec<String> {
    let first = (chosen + 1).saturating_sub(shown.max(1));
    let rows = rows.iter().enumerate().skip(first).take(shown);
    let wide = |n: usize| {
        let cells = rows.clone().filter_map(|(_, row)| row.get(n));
        cells
            .map(Cell::wide)
            .chain([heads[n].wide()])
            .max()
            .unwrap_or(0)
    };
    let mut widths: Vec<usize> = (0..heads.len()).map(wide).collect();
    let others: usize = widths.iter().skip(1).map(|wide| wide + GAP).sum();
    if let Some(first) = widths.first_mut() {
        let room = width.saturating_sub(CHOSEN.len() + others);
        *first = (*first).min(room.max(1));
    }
    let line = |mark: &str, row: &[Cell]| {
        let mut line = Line::new(width, paint).add(Style::Strong, mark);
        let mut begin = CHOSEN.len();
        for (cell, wide) in row.iter().zip(&widths) {
            let text: String = cell.text.chars().take(*wide).collect();
            let at = match cell.align {
                Align::Left => begin,
                Align::Right => begin + wide - text.chars().count(),
            };
            line = line.to(at).add(cell.style, &text);
            begin += wide + GAP;
        }
        line.done()
    };
    let mut lines = vec![line("", heads)];
    lines.extend(
        rows.clone()
            .map(|(n, row)| line(if n == chosen { CHOSEN } else { "" }, row)),
    );
    lines
}
