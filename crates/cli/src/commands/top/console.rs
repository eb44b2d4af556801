//! The screen of `fulmar top`: the verdicts, and below them one of four tables, in the manner of htop.
//!
//! # Promises
//! - Nothing that a gateway or a peer says reaches the terminal as a control sequence.
//! - A screen has as many lines as the terminal is high at most, and none is wider than it.

use super::super::lines::{GAP, Line, Paint, Style, after, wrapped};
use super::super::verdicts::{ShownAlarm, graded, overall};
use super::columns::{Align, Cell, table};
use super::flows::{FlowColumn, FlowRates};
use super::keys::{Direction, Pressed};
use super::model::{Peer, View};
use super::picture;
use super::tabs::Tab;

/// The size of a terminal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

/// A screen in the making: so many lines of this width.
struct Sheet {
    lines: Vec<String>,
    size: Size,
    paint: Paint,
}

impl Sheet {
    /// The lines that still fit, without the last one.
    fn room(&self) -> usize {
        self.size.rows.saturating_sub(self.lines.len() + 1)
    }

    fn line(&self) -> Line {
        Line::new(self.size.columns, self.paint)
    }

    fn add(&mut self, line: String) {
        if self.lines.len() < self.size.rows {
            self.lines.push(line);
        }
    }

    fn look(&self) -> (usize, Paint) {
        (self.size.columns, self.paint)
    }
}

const HELP: &str = "\
Tab, left, right, 1 to 4    links, flows, figures, decisions
up, down, k, j              a line
Page Up, b; Page Down, space  a screen
Home, g; End, G             the first, the last line
s                           flows: sort by the next column
r                           flows: sort the other way round
?, h                        this help
q, Ctrl-C                   end

good  as it should be
poor  it works, but less well than it could
BAD   it does not do what it is for

docs/guide/verdicts.md has the rules, with causes and cures.";

/// The table beside `tab`.
fn beside(tab: Tab, direction: Direction) -> Tab {
    let count = Tab::ALL.len();
    let place = Tab::ALL.iter().position(|one| *one == tab).unwrap_or(0);
    let step = match direction {
        Direction::On => 1,
        Direction::Back => count - 1,
    };
    Tab::ALL[(place + step) % count]
}

/// The part of the screen that the verdicts have at most.
const VERDICTS_PART: usize = 3;

/// The screen as its user has set it: tab, order, place, help.
#[derive(Debug, Default)]
pub(super) struct Console {
    tab: Tab,
    is_helping: bool,
    /// The line that is chosen, or the first that is shown, of each tab.
    at: [usize; 4],
    /// The lines of the tab, and those that fit, when it was shown last.
    all: usize,
    shown: usize,
    order: FlowColumn,
    is_reversed: bool,
    rates: FlowRates,
}

impl Console {
    /// Takes another look into account.
    pub(super) fn look(&mut self, view: &View) {
        self.rates.look(view);
    }

    /// Does what a key asks for.
    pub(super) fn press(&mut self, pressed: Pressed) {
        if core::mem::take(&mut self.is_helping) {
            return;
        }
        match pressed {
            Pressed::Quit => {}
            Pressed::Help => self.is_helping = true,
            Pressed::Tab(tab) => self.tab = tab,
            Pressed::NextTab(direction) => self.tab = beside(self.tab, direction),
            Pressed::Sort => self.order = self.order.next(),
            Pressed::Reverse => self.is_reversed = !self.is_reversed,
            Pressed::Line(direction) => self.go(1, direction),
            Pressed::Page(direction) => self.go(self.shown.max(1), direction),
            Pressed::End(direction) => self.go(self.all, direction),
        }
    }

    fn go(&mut self, step: usize, direction: Direction) {
        let last = match self.tab {
            // Of a table a line is chosen; of a text the first line is.
            Tab::Links | Tab::Flows => self.all.saturating_sub(1),
            Tab::Figures | Tab::Decisions => self.all.saturating_sub(self.shown),
        };
        let at = self.at_mut();
        *at = match direction {
            Direction::Back => at.saturating_sub(step),
            Direction::On => at.saturating_add(step).min(last),
        };
    }

    fn at_mut(&mut self) -> &mut usize {
        &mut self.at[self.tab as usize]
    }

    /// Notes how many lines there are and how many fit; returns the place, which may have been beyond.
    fn bounded(&mut self, all: usize, shown: usize) -> usize {
        (self.all, self.shown) = (all, shown);
        let last = match self.tab {
            Tab::Links | Tab::Flows => all.saturating_sub(1),
            Tab::Figures | Tab::Decisions => all.saturating_sub(shown),
        };
        let at = self.at_mut();
        *at = (*at).min(last);
        *at
    }

    /// The screen as lines of text; `problem` says why it is old.
    pub(super) fn screen(
        &mut self,
        view: &View,
        problem: Option<&str>,
        size: Size,
        paint: Paint,
    ) -> Vec<String> {
        let size = Size {
            columns: size.columns.max(1),
            rows: size.rows.max(1),
        };
        let mut sheet = Sheet {
            lines: Vec::new(),
            size,
            paint,
        };
        if let Some(problem) = problem {
            let text = format!("OLD: {problem}");
            sheet.add(sheet.line().add(Style::Bad, &text).done());
        }
        for line in heading(view, &sheet) {
            sheet.add(line);
        }
        if self.is_helping {
            for line in HELP.lines() {
                sheet.add(sheet.line().add(Style::Usual, line).done());
            }
            return sheet.lines;
        }
        verdicts(view, &mut sheet);
        sheet.add(self.tab_line(&sheet));
        match self.tab {
            Tab::Links => self.links(view, &mut sheet),
            Tab::Flows => self.flows(view, &mut sheet),
            Tab::Figures => self.text(picture::figures(view, sheet.look()), &mut sheet),
            Tab::Decisions => self.text(picture::decisions(view, sheet.look()), &mut sheet),
        }
        while sheet.room() > 0 {
            sheet.add(String::new());
        }
        sheet.add(self.foot(&sheet));
        sheet.lines
    }

    fn tab_line(&self, sheet: &Sheet) -> String {
        let mut line = sheet.line();
        for (n, tab) in Tab::ALL.into_iter().enumerate() {
            let (number, name) = (n + 1, tab.name());
            line = if tab == self.tab {
                line.add(Style::Strong, &format!("[{number} {name}]"))
            } else {
                line.add(Style::Quiet, &format!(" {number} {name} "))
            };
        }
        line.done()
    }

    fn foot(&self, sheet: &Sheet) -> String {
        let place = match self.tab {
            Tab::Flows => format!("by {}; ", self.order.name()),
            Tab::Figures | Tab::Decisions if self.all > self.shown => {
                let at = self.at[self.tab as usize];
                format!("lines {} to {} of {}; ", at + 1, at + self.shown, self.all)
            }
            Tab::Links | Tab::Figures | Tab::Decisions => String::new(),
        };
        let keys = match self.tab {
            Tab::Flows => "arrows, s sort, r reverse, ? help, q quit",
            Tab::Links | Tab::Figures | Tab::Decisions => "arrows and Tab, ? help, q quit",
        };
        sheet.line().add(Style::Quiet, &(place + keys)).done()
    }

    /// The table of links, and what there is to say of the chosen one.
    fn links(&mut self, view: &View, sheet: &mut Sheet) {
        let peers = worst_first(view);
        let shown = peers.len().min((sheet.room() / 2).max(3));
        let chosen = self.bounded(peers.len(), shown);
        let rows = peers.iter().map(|peer| link_row(peer)).collect::<Vec<_>>();
        let heads = [
            "LINK",
            "STATE",
            "LOST THERE",
            "LOST HERE",
            "DELIVERED",
            "RECEIVED",
            "ROUND TRIP",
        ];
        let heads = heads.map(|head| Cell::head(head, is_word(head)));
        for line in table(&heads, &rows, (chosen, shown), sheet.look()) {
            sheet.add(line);
        }
        let Some(peer) = peers.get(chosen) else {
            return;
        };
        let of_peer = |alarm: &&ShownAlarm| {
            alarm.peer.is_none() || alarm.peer.as_deref() == Some(peer.name.as_str())
        };
        let mut lines = vec![String::new()];
        for alarm in view.alarms.iter().filter(of_peer) {
            let text = format!(
                "{}. Cause: {}. Cure: {}.",
                alarm.text, alarm.cause, alarm.cure
            );
            let name = alarm.rule.replace('_', " ");
            graded(alarm.grade, &name, &text, sheet.look(), &mut lines);
        }
        for way in &peer.ways {
            broken(&format!("{}: {}", way.title, way.says), sheet, &mut lines);
        }
        broken(&peer.says, sheet, &mut lines);
        for line in lines.into_iter().take(sheet.room()) {
            sheet.add(line);
        }
    }

    fn flows(&mut self, view: &View, sheet: &mut Sheet) {
        let mut rows = self.rates.rows(view);
        if rows.is_empty() {
            self.bounded(0, sheet.room());
            sheet.add(sheet.line().add(Style::Quiet, "No flows now.").done());
            return;
        }
        rows.sort_by(|one, other| self.order.compare(one, other));
        if self.is_reversed {
            rows.reverse();
        }
        let left_out = usize::from(view.flows_left_out > 0);
        let shown = sheet.room().saturating_sub(1 + left_out);
        let chosen = self.bounded(rows.len(), shown);
        let heads = FlowColumn::ALL.map(|column| {
            let name = column.name().to_uppercase();
            let name = if column == self.order {
                name + "*"
            } else {
                name
            };
            Cell::head(&name, column.align())
        });
        let cells: Vec<Vec<Cell>> = rows.iter().map(|row| row.cells().to_vec()).collect();
        for line in table(&heads, &cells, (chosen, shown), sheet.look()) {
            sheet.add(line);
        }
        if left_out > 0 {
            let text = format!("{} younger flows are not listed", view.flows_left_out);
            sheet.add(sheet.line().add(Style::Quiet, &text).done());
        }
    }

    fn text(&mut self, lines: Vec<String>, sheet: &mut Sheet) {
        let shown = sheet.room();
        let at = self.bounded(lines.len(), shown);
        for line in lines.into_iter().skip(at).take(shown) {
            sheet.add(line);
        }
    }
}

/// Words begin at the left, numbers end at the right.
fn is_word(head: &str) -> Align {
    match head {
        "LINK" | "STATE" => Align::Left,
        _ => Align::Right,
    }
}

fn worst_first(view: &View) -> Vec<&Peer> {
    let mut peers: Vec<&Peer> = view.peers.iter().collect();
    peers.sort_by_key(|peer| core::cmp::Reverse(peer.verdict.grade));
    peers
}

/// The gateway and its figures, in further lines where one is too short.
fn heading(view: &View, sheet: &Sheet) -> Vec<String> {
    let now = view.groups.first();
    let figures = now.into_iter().flat_map(|group| &group.figures);
    let figures: Vec<String> = figures
        .take(3)
        .map(|figure| format!("{} {}", figure.label, figure.text))
        .collect();
    let about = format!(
        "up {}, {}, Fulmar {}, snapshot {}",
        after(view.uptime_seconds),
        figures.join(", "),
        view.version,
        view.sequence
    );
    let line = sheet.line().add(Style::Strong, &view.name);
    let line = overall(line, view.grade, view.unprotected);
    let line = line.add(Style::Usual, "  ");
    let columns = sheet.size.columns;
    let (first, further) = wrapped(&about, columns.saturating_sub(line.columns), columns);
    let mut lines = vec![line.add(Style::Quiet, &first).done()];
    let further = further.into_iter();
    lines.extend(further.map(|text| sheet.line().to(GAP).add(Style::Quiet, &text).done()));
    lines
}

fn broken(text: &str, sheet: &Sheet, lines: &mut Vec<String>) {
    let (first, further) = wrapped(text, sheet.size.columns, sheet.size.columns);
    lines.push(sheet.line().add(Style::Quiet, &first).done());
    let further = further.into_iter();
    lines.extend(further.map(|text| sheet.line().to(GAP).add(Style::Quiet, &text).done()));
}

/// The verdicts, the worst first, behind alarms of the gateway itself; a third of the screen at most.
fn verdicts(view: &View, sheet: &mut Sheet) {
    let mut lines = Vec::new();
    for alarm in view.alarms.iter().filter(|alarm| alarm.peer.is_none()) {
        let text = format!("{}; {}.", alarm.text, alarm.cure);
        let name = alarm.rule.replace('_', " ");
        graded(alarm.grade, &name, &text, sheet.look(), &mut lines);
    }
    for peer in worst_first(view) {
        let verdict = &peer.verdict;
        graded(
            verdict.grade,
            &peer.name,
            &verdict.text,
            sheet.look(),
            &mut lines,
        );
    }
    let most = sheet.size.rows / VERDICTS_PART;
    if lines.len() > most {
        lines.truncate(most.saturating_sub(1));
        lines.push(
            sheet
                .line()
                .add(Style::Quiet, "… and so on: the first table has all links")
                .done(),
        );
    }
    for line in lines.into_iter().take(most) {
        sheet.add(line);
    }
}

fn link_row(peer: &Peer) -> Vec<Cell> {
    let of = |series: &str, label: &str| {
        let figures = peer.groups.iter().flat_map(|group| &group.figures);
        let mut named = figures
            .filter(|figure| figure.series.starts_with(series) && figure.series.contains(label));
        let text = named.next().map_or("–", |figure| &figure.text);
        Cell::new(Style::Usual, text, Align::Right)
    };
    let state = picture::link_style(&peer.link);
    vec![
        Cell::new(Style::Strong, &peer.name, Align::Left),
        Cell::new(state, &peer.link, Align::Left),
        of("fulmar_link_loss_ratio{", "direction=\"out\""),
        of("fulmar_link_loss_ratio{", "direction=\"in\""),
        of("fulmar_payload_confirmed_bits_per_second{", ""),
        of("fulmar_payload_received_bits_per_second{", ""),
        of("fulmar_rtt_seconds{", ""),
    ]
}

#[cfg(test)]
mod tests;
