//! An endpoint that was told no rate finds the link's.

use crate::link::{ANY, Link, PATIENCE, keys, lossy, octets};
use fulmar::{Config, Endpoint, RateSharing};
use fulmar_channel::ChannelConfig;
use fulmar_net::clock::Clock;
use fulmar_proto::units::{Bitrate, Duration, Instant};
use std::io::{Read, Write};

const LINK: Bitrate = Bitrate::from_bits_per_second(20_000_000);

fn way(loss: f64) -> ChannelConfig {
    ChannelConfig {
        rate: Some(LINK),
        ..lossy(loss, Duration::from_millis(5))
    }
}

#[test]
fn what_nobody_told_is_found_and_lossy_links_are_used() {
    for (loss, sharing) in [(0.0, None), (0.2, Some(RateSharing::Own))] {
        let [called, calling] = keys();
        let key = called.public();
        let with = |config: Config| match sharing {
            Some(sharing) => config.share(sharing),
            None => config,
        };
        let server = with(Config::new(called).peer(calling.public()));
        let server = Endpoint::bind(ANY, server).expect("a free port");
        let client = Endpoint::bind(ANY, with(Config::new(calling))).expect("a free port");
        let mut link = Link::to(server.local_addr(), way(loss), way(loss));
        let listener = server.listen().expect("it listens");
        let sent = octets(6_000_000);
        let clock = Clock::start();
        let mut stream = client.connect(link.address, &key).expect("a stream");
        std::thread::scope(|scope| {
            let receiving = scope.spawn(|| {
                let mut stream = listener.accept(Some(PATIENCE)).expect("it comes");
                let mut came = Vec::new();
                stream.read_to_end(&mut came).expect("it is whole");
                came
            });
            stream.write_all(&sent).expect("it is taken");
            stream.finish().expect("it arrives");
            assert!(receiving.join().expect("a thread") == sent, "other octets");
        });
        let took = clock.now().saturating_since(Instant::START).as_secs_f64();
        let carried = sent.len() as f64 * 8.0 / (1.0 - loss) / took / 1e6;
        let report = link.cut().expect("it ran");
        println!("{loss}: {carried:.1} of 20 Mbit/s, {:?}", report.up);
        // A busy machine makes it slower; the queue tells whether too much was sent.
        assert!(carried > 5.0, "{loss}: {carried} Mbit/s");
    }
}
