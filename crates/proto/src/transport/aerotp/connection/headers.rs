//! The connection's headers: which form its TPDUs have on the path, and what the peer's leave out.

use super::super::answer::Answer;
use super::super::packing::Packing;
use super::Connection;
use crate::machine::TpduForm;
use crate::transport::parts::DeliveryReport;
use crate::units::Instant;
use crate::wire::aerotp::short::{Ends, Named};
use crate::wire::aerotp::{EcnField, FecStrength, Feedback};
use crate::wire::{Port, cut};

impl Connection {
    /// The headers of the connection's data. A name is used only after the peer was heard, since before it may not know the connection.
    pub(super) fn packing(&self) -> Packing {
        let is_named = self.heard && self.key.named(self.initiator).is_some();
        Packing::of(self.form, is_named)
    }

    /// The name to use, if the path speaks the short form and the peer knows the connection.
    pub(super) fn named(&self) -> Option<Named> {
        match self.packing() {
            Packing::Named => self.key.named(self.initiator),
            Packing::Long | Packing::Full => None,
        }
    }

    pub(in super::super) const fn is_initiator(&self) -> bool {
        self.initiator
    }

    /// The things that the peer's frames leave out.
    pub(in super::super) fn ends(&self) -> Ends {
        Ends {
            local: Port(self.key.local),
            remote: Port(self.key.remote),
            mode: self.config.mode,
            next_expected: self.receiver.next_expected(),
            first_unsettled: self.sender.first_unsettled(),
        }
    }

    /// Sends in this form from now on.
    pub(in super::super) fn speak(&mut self, form: TpduForm) {
        if form == TpduForm::Short {
            self.sender.cut_stamps();
        }
        self.form = form;
        self.repack();
        self.use_windows(self.windows);
    }

    /// Sends repair symbols over windows from now on, if the peer takes them, where they have a form.
    pub(in super::super) fn use_windows(&mut self, are_taken: bool) {
        self.windows = are_taken;
        let named = self
            .named()
            .filter(|_| are_taken && !self.config.keeps_check());
        self.sender.use_windows(named);
    }

    /// Cuts payloads for the headers as they are now. If they leave no room, payloads stay as they are until there is a size for the form.
    pub(super) fn repack(&mut self) {
        if let Ok(payload_bytes) = self.config.payload_bytes_in(self.packing())
            && payload_bytes != self.sender.payload_bytes()
        {
            self.sender.set_payload_bytes(payload_bytes);
            self.restart_adaptation(payload_bytes);
        }
    }

    /// Whether TPDUs in the long form have a CRC-32. Under a seal it would say nothing new.
    pub(super) fn has_crc(&self) -> bool {
        self.config.payload_crc && (self.form == TpduForm::Long || self.config.keeps_check())
    }

    /// The way to write MACKs and NACKs with parity of this strength.
    pub(super) fn answer(&self, strength: FecStrength) -> Answer {
        let template = Feedback {
            source: Port(self.key.local),
            destination: Port(self.key.remote),
            mode: self.config.mode,
            ecn: EcnField::NONE,
            echo: 0,
            crc: self.form == TpduForm::Long,
            fec_words: strength,
        };
        Answer {
            template,
            packing: self.packing(),
            named: self.named().filter(|_| strength.is_none()),
            bytes_max: self.config.tpdu_bytes_max,
        }
    }

    /// The report with the end of the echoed unit of time for its beginning, so that the octets sent by then include the TPDU that is
    /// echoed.
    pub(super) const fn counting_the_echoed(
        &self,
        now: Instant,
        report: DeliveryReport,
    ) -> DeliveryReport {
        if !self.sender.cuts_stamps() {
            return report;
        }
        let age = now.as_wrapping_micros().wrapping_sub(report.echo);
        let rest = if age < cut::TIME_UNIT_MICROS {
            age
        } else {
            cut::TIME_UNIT_MICROS
        };
        DeliveryReport {
            echo: report.echo.wrapping_add(rest),
            ..report
        }
    }

    /// The moment of this end's clock that the peer echoes, in microseconds.
    pub(super) const fn echoed(&self, now: Instant, echo: u32) -> u32 {
        if self.sender.cuts_stamps() {
            cut::latest(now.as_wrapping_micros(), cut::time24(echo))
        } else {
            echo
        }
    }
}
