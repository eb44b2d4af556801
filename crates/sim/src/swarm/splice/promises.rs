//! The promises to a session's hosts, held against what they received.

use super::goal::Due;
use super::local_end::{ACCEPTOR_DURABLE, LocalEnd, OPENER_DURABLE};
use super::{Session, message};
use fulmar_proto::splice::{FlowEvent, FlowKind, RefuseCode, ResetCode};
use std::collections::BTreeSet;

impl Session {
    /// Every promise that was not kept. Counts the messages that were held to a deadline.
    pub(super) fn broken(&self, judged: &mut u64) -> Vec<String> {
        let mut broken = Vec::new();
        for (index, flow) in self.flows.iter().enumerate() {
            for side in 0..2 {
                let gateway = &self.star.gateways[flow.at[side]];
                let earlier = gateway.earlier.iter().filter(|(id, _)| *id == flow.id);
                let ends = gateway.ends.get(&flow.id).into_iter();
                for end in ends.chain(earlier.map(|(_, end)| end)) {
                    *judged += self.check_content(index, side, end, &mut broken);
                }
                self.check_end(index, side, &mut broken);
            }
        }
        for (index, gateway) in self.star.gateways.iter().enumerate() {
            let splicer = gateway.splicer();
            let left = [
                splicer.entry_count() as u64,
                splicer.counters().flows_now,
                splicer.counters().credit_reserved,
                splicer.endpoint().connection_count() as u64,
            ];
            if left != [0; 4] {
                broken.push(format!(
                    "gateway {index} is left with {left:?} entries, flows, credit, connections"
                ));
            }
        }
        broken
    }

    /// Checks that one end received the beginning of what the other host sent, or its messages. Returns the number of those
    /// that were held to a deadline.
    fn check_content(
        &self,
        index: usize,
        side: usize,
        end: &LocalEnd,
        broken: &mut Vec<String>,
    ) -> u64 {
        let flow = &self.flows[index];
        let name = |what: String| format!("flow {index}, side {side}: {what}");
        broken.extend(end.wrongs.iter().map(|wrong| name(wrong.clone())));
        if !flow.says[1 - side].starts_with(&end.received) {
            broken.push(name("altered, missing or doubled octets".to_owned()));
        }
        let mut seen = BTreeSet::new();
        let told = &flow.told[1 - side];
        let way = self.star.longest_way(flow.at[1 - side], flow.at[side]);
        let mut due = Due::of(&flow.class, way);
        for (at, got) in &end.messages {
            let number = got.first_chunk().map(|n| u64::from_be_bytes(*n));
            let when = number.and_then(|number| told.get(usize::try_from(number).ok()?));
            let age = when.map(|when| at.saturating_since(*when));
            if let Some(age) =
                age.filter(|age| due.as_mut().is_some_and(|due| due.is_missed(*at, *age)))
            {
                broken.push(name(format!("a message came after {age:?}")));
            }
            match number.filter(|number| *number < told.len() as u64) {
                Some(number) if *got != message(index, 1 - side, number) => {
                    broken.push(name(format!("message {number} altered")));
                }
                Some(number) if !seen.insert(number) => {
                    broken.push(name(format!("message {number} twice")));
                }
                Some(_) => {}
                None => broken.push(name("a message that nobody sent".to_owned())),
            }
        }
        due.map_or(0, |due| due.judged())
    }

    /// Checks that the flow ended at one side in one of the ways that the session's events allow.
    fn check_end(&self, index: usize, side: usize, broken: &mut Vec<String>) {
        let flow = &self.flows[index];
        let ends = [0, 1].map(|side| self.star.gateways[flow.at[side]].ends.get(&flow.id));
        let Some(end) = ends[side] else { return };
        let far = ends[1 - side];
        let whole = |side: usize| {
            ends[side].is_some_and(|end| end.received.len() == flow.says[1 - side].len())
        };
        let restarted = flow
            .at
            .map(|gateway| self.star.gateways[gateway].starts > 0);
        let got = |far: &LocalEnd| far.received.len() as u64;
        if restarted == [false; 2]
            && end.broke
            && end.is_drained()
            && far.is_some_and(|far| got(far) < end.kept_until())
        {
            broken.push(format!(
                "flow {index}, side {side}: what a lost host had said is missing"
            ));
        }
        let far_done = far.is_some_and(|far| matches!(far.last, Some(FlowEvent::Closed(_))));
        // Either end dies with its gateway, or may have been asked for again.
        let mortal = [OPENER_DURABLE, ACCEPTOR_DURABLE]
            .iter()
            .zip(restarted)
            .any(|(bit, restarted)| {
                restarted && !(flow.class.resume && flow.class.id.0 & bit != 0)
            });
        let fine = match &end.last {
            Some(_) if flow.kind == FlowKind::Datagrams => true,
            Some(FlowEvent::Closed(_)) => whole(side) && (flow.cut || whole(1 - side) || mortal),
            Some(_) if flow.cut => true,
            // The far side's last record may be lost with its memory: all is delivered then.
            Some(FlowEvent::Reset { code, .. }) => {
                *code == ResetCode::PeerLost && (mortal || (far_done && restarted[1 - side]))
            }
            Some(FlowEvent::Refused { code, .. }) => match code {
                RefuseCode::TooMany => true,
                RefuseCode::Unreachable | RefuseCode::Forgotten => {
                    mortal || (far_done && restarted[1 - side])
                }
                _ => false,
            },
            _ => false,
        };
        if !fine {
            let far = far.map(|far| (&far.last, far.received.len()));
            broken.push(format!(
                "flow {index} {:?}: side {side} ends {:?} with {} of {} octets; the far side: {far:?}",
                flow.class,
                end.last,
                end.received.len(),
                flow.says[1 - side].len(),
            ));
        }
    }
}
