//! A splicer's settings and bounds.

use super::credit::{CreditPool, FLOOR_BYTES};
use crate::transport::aerotp::ConnectionConfig;
use crate::units::{ByteCount, Duration};
use crate::wire::Port;

/// The settings of a splicer.
#[derive(Clone, Copy, Debug)]
pub struct SplicerConfig {
    /// AeroTP's settings for every flow; a flow's class replaces mode, priority and parity, and its
    /// window the buffer. `give_up_after` is the time for which a flow outlives a link that is
    /// down.
    pub connection: ConnectionConfig,
    /// The first of the ports that flows connect to, the same at both gateways.
    pub port: Port,
    /// The number of ports, from that one on. Each allows 16,384 connections with a peer within the
    /// two minutes for which AeroTP does not use a pair of ports again.
    pub ports: u16,
    /// The number of this gateway's start: a later start has a larger number. It keeps an opening
    /// that was delayed across a restart from being taken for a new one.
    pub incarnation: u32,
    /// Flows at one time, at most, opened and accepted ones together.
    pub flows_max: usize,
    /// Ended flows of all peers together whose outcome is remembered, at most, for an opener that did not hear
    /// it.
    pub ends_max: usize,
    /// Octets from all peers that may be unread or promised, together, at most.
    pub receive_memory: ByteCount,
    /// Octets of datagram flows to all peers that may wait to be sent, together, at most. One message of each flow may wait beyond it.
    pub waiting_memory: ByteCount,
    /// Octets that an opener may send before the acceptor has answered, at most; both gateways
    /// should have the same.
    pub first_credit: ByteCount,
    /// Octets of one flow handed to AeroTP and not yet sent, at most. A control record has to wait
    /// for them.
    pub unsent_max: ByteCount,
    /// The longest time before a delivery is reported, where much was delivered; of little the report waits four times as long.
    pub report_after: Duration,
    /// The time that the acceptor's driver may take to connect, before the flow is refused instead.
    pub answer_within: Duration,
    /// The time without any octets after which a stream is reset; also that for which a stream
    /// waits until its destination acknowledges the end.
    pub stream_idle_max: Duration,
    /// The time without any message after which a datagram flow is closed.
    pub datagram_idle_max: Duration,
    /// The time for which a flow that may resume waits for a new connection.
    pub resume_within: Duration,
    /// The first pause before a lost connection is opened again; it doubles up to 32 times this.
    pub reconnect_pause: Duration,
    /// The time that the far side has to say by itself that it still has a flow, before it is asked; then
    /// the pause between two questions, which doubles up to 16 times this.
    pub ask_after: Duration,
    /// The time that a message waits for its missing fragments, if its class has no deadline.
    pub reassembly_wait: Duration,
}

/// The error about settings that cannot work: the field, and the values it allows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` {problem}")]
pub struct SplicerConfigError {
    /// The setting's name.
    pub field: &'static str,
    /// The problem, and what would be right.
    pub problem: String,
}

impl SplicerConfig {
    /// Checks the settings. Returns them with the memory that they allow for credit.
    pub(super) fn checked(self) -> Result<(Self, CreditPool), SplicerConfigError> {
        let error = |field, problem: String| SplicerConfigError { field, problem };
        if self.ports == 0 || self.port.0.checked_add(self.ports - 1).is_none() {
            let problem = format!(
                "is {} from port {} on; there must be at least 1, up to port 65535",
                self.ports, self.port.0
            );
            return Err(error("ports", problem));
        }
        let memory = self.receive_memory;
        let pool = CreditPool::new(memory.0, self.flows_max).ok_or_else(|| {
            let needed = FLOOR_BYTES.saturating_mul(self.flows_max as u64);
            error(
                "receive_memory",
                format!(
                    "is {} octets; {} flows need at least {needed}",
                    memory.0, self.flows_max
                ),
            )
        })?;
        Ok((self, pool))
    }

    pub(super) const fn last_port(&self) -> u16 {
        self.port.0.saturating_add(self.ports - 1)
    }

    /// The settings of connections that a peer opens.
    pub(super) fn listener(&self) -> ConnectionConfig {
        ConnectionConfig {
            unsent_bytes_max: self.unsent_max.as_usize(),
            ..self.connection
        }
    }
}

impl Default for SplicerConfig {
    fn default() -> Self {
        let hour = Duration::from_secs(3600);
        Self {
            connection: ConnectionConfig {
                give_up_after: hour * 4,
                ..ConnectionConfig::default()
            },
            port: Port(7_070),
            ports: 4,
            incarnation: 0,
            flows_max: 16_384,
            ends_max: 16_384,
            receive_memory: ByteCount(512 << 20),
            waiting_memory: ByteCount(128 << 20),
            first_credit: ByteCount(256 << 10),
            unsent_max: ByteCount(32 << 10),
            report_after: Duration::from_millis(50),
            answer_within: Duration::from_secs(150),
            stream_idle_max: hour * 24,
            datagram_idle_max: Duration::from_secs(300),
            resume_within: hour * 4,
            reconnect_pause: Duration::from_millis(500),
            ask_after: Duration::from_secs(1),
            reassembly_wait: Duration::from_secs(2),
        }
    }
}
