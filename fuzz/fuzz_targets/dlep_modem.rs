//! Any octets from a modem: the router's side of DLEP keeps its bounds, never waits for the past, and ends politely.

#![no_main]

use fulmar_proto::dlep::wire::{read_items, read_signal};
use fulmar_proto::dlep::{DlepConfig, DlepRouter};
use fulmar_proto::units::{Duration, Instant};
use libfuzzer_sys::fuzz_target;
use std::net::SocketAddr;

fuzz_target!(|pieces: Vec<(u8, Vec<u8>)>| {
    let modem = SocketAddr::from(([192, 0, 2, 9], 854));
    let mut router = DlepRouter::new(DlepConfig::default());
    let mut now = Instant::START;
    for (kind, octets) in pieces {
        now = now + Duration::from_millis(u64::from(kind));
        drop(read_items(&octets));
        drop(read_signal(&octets));
        match kind % 4 {
            0 => router.handle_datagram(now, modem, &octets),
            1 => router.handle_connected(now),
            2 => router.handle_closed(now),
            _ => router.handle_octets(now, &octets),
        }
        if let Some(due) = router.next_deadline().filter(|due| due.at <= now) {
            router.handle_deadline(now);
            let next = router.next_deadline().map(|next| next.at);
            assert!(next.is_none_or(|at| at > now), "{}", due.why);
        }
        while router.poll_action().is_some() {}
        let _ = router.poll_news();
    }
});
