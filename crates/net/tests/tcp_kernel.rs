//! Our TCP is a TCP: it talks to the Linux kernel's, over a TUN device, clean and under loss.
//!
//! Method: both sides send and compare contents; a bystander reads what crosses the link. Needs root;
//! without it each test says that it was skipped.

use crate::tcp_lab::{
    Family, Features, Flow, Host, Kernel, OUR_PORT, accept, assert_same, damaging, exchange, lab,
    losing, octets, read_all, ready, write_all,
};
use fulmar_baseline::tcp::{RecoveryRules, TcpCloseReason, TcpConfig, TcpPreset, TcpState};
use fulmar_channel::{BitErrors, ChannelCounters, Jitter, PacketOrder};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{BitErrorRate, ByteCount, Duration, Probability};
use socket2::SockRef;
use std::io::{ErrorKind, Read};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc;

const KERNEL_PORT: u16 = 5000;
/// The share lost in each direction.
const LOSS: f64 = 0.05;

/// Linux's choices with these features, and a TIME-WAIT that is over soon.
fn like_linux(features: Features) -> TcpConfig {
    let config = quick(TcpPreset::LinuxLike);
    TcpConfig {
        recovery: RecoveryRules {
            sack: features.sack,
            ..config.recovery
        },
        timestamps: features.timestamps,
        window_scaling: features.window_scaling,
        ..config
    }
}

fn quick(preset: TcpPreset) -> TcpConfig {
    TcpConfig {
        time_wait: Duration::from_secs(1),
        ..preset.config()
    }
}

/// The side that sends the first SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Opener {
    We,
    TheKernel,
}

/// Runs our end while `kernels` happens on another thread, until that is done and `done` holds.
fn beside<T: Send>(
    host: &mut Host,
    what: &str,
    kernels: impl FnOnce() -> T + Send,
    done: impl Fn(&Host) -> bool,
) -> T {
    std::thread::scope(|scope| {
        let kernels = scope.spawn(kernels);
        host.run_until(what, |host| kernels.is_finished() && done(host));
        kernels.join().expect("the kernel's side succeeds")
    })
}

/// Opens a connection from either side for `flow`; returns the result of the kernel's side.
#[expect(clippy::too_many_arguments, reason = "a test's whole description")]
fn connected<T: Send>(
    host: &mut Host,
    kernel: &Kernel,
    opener: Opener,
    config: TcpConfig,
    flow: Flow,
    what: &str,
    kernels: impl FnOnce(TcpStream) -> T + Send,
) -> T {
    match opener {
        Opener::We => {
            let listener = kernel.listen(KERNEL_PORT, None);
            host.connect(KERNEL_PORT, config, flow);
            beside(host, what, || kernels(accept(&listener)), is_over)
        }
        Opener::TheKernel => {
            host.listen(config, flow);
            let open = || kernel.connect(OUR_PORT.0, None).expect("we listen");
            beside(host, what, || kernels(open()), is_over)
        }
    }
}

fn is_over(host: &Host) -> bool {
    host.flow().closed.is_some()
}

/// Both sides send `len` octets at once and finish.
fn transfer(
    host: &mut Host,
    kernel: &Kernel,
    opener: Opener,
    config: TcpConfig,
    len: usize,
    what: &str,
) {
    let ours = octets("ours", len);
    let kernels = octets("the kernel's", len);
    let flow = Flow::sending(&ours);
    let came = connected(host, kernel, opener, config, flow, what, |stream| {
        exchange(&stream, &kernels)
    });
    assert_same(&format!("{what}: to the kernel"), &came, &ours);
    assert_same(
        &format!("{what}: from the kernel"),
        &host.flow().received,
        &kernels,
    );
    assert!(host.flow().peer_finished, "{what}");
    assert_eq!(host.flow().closed, Some(TcpCloseReason::Finished), "{what}");
    let ((_, sent), (_, heard)) = (host.sent(), host.heard());
    println!(
        "{what}: {len} octets each way; of {} and {} packets {} and {} lost; ours: {:?}",
        sent.offered_packets,
        heard.offered_packets,
        lost(&sent),
        lost(&heard),
        host.counters()
    );
}

fn lost(way: &ChannelCounters) -> u64 {
    way.offered_packets - way.delivered_packets
}

/// Checks that both directions used the options that both sides have, and no others.
fn assert_agreed(host: &Host, opener: Opener, ours: Features, kernels: Features, lossy: bool) {
    let both = Features {
        sack: ours.sack && kernels.sack,
        timestamps: ours.timestamps && kernels.timestamps,
        window_scaling: ours.window_scaling && kernels.window_scaling,
    };
    let (sent, _) = host.sent();
    let (heard, _) = host.heard();
    let (our_syn, kernels_syn) = match opener {
        Opener::We => (ours, both),
        Opener::TheKernel => (both, kernels),
    };
    for (seen, asked) in [(sent, our_syn), (heard, kernels_syn)] {
        let syn = seen.syn.expect("each side sent one");
        let told = Features {
            sack: syn.sack_permitted,
            timestamps: syn.timestamps.is_some(),
            window_scaling: syn.window_scale.is_some(),
        };
        assert_eq!(told, asked, "{opener:?}: {seen:?}");
        if both.timestamps {
            assert_eq!(seen.unstamped, 0, "{seen:?}");
        } else {
            assert_eq!(seen.stamped, 0, "{seen:?}");
        }
        if both.sack && lossy {
            assert!(seen.sacks > 0, "{seen:?}");
        }
        if !both.sack {
            assert_eq!(seen.sacks, 0, "{seen:?}");
        }
        assert_eq!(seen.resets, 0, "{seen:?}");
    }
}

/// Every combination of features that our side asks for, then that the kernel does, over both
/// network layers, opened by either side.
fn transfers_with_all_combinations(loss: f64, len: usize, seed: u64) {
    for (number, features) in Features::combinations().enumerate() {
        for opener in [Opener::We, Opener::TheKernel] {
            let ours_vary = (number % 2 == 0) == (opener == Opener::We);
            let (ours, kernels) = if ours_vary {
                (features, Features::ALL)
            } else {
                (Features::ALL, features)
            };
            let family = if number.count_ones() % 2 == 0 {
                Family::V4
            } else {
                Family::V6
            };
            let what = format!(
                "{family:?}, {opener:?} open, ours {ours:?}, kernel's {kernels:?}, seed {seed}"
            );
            let (mut host, kernel) = lab(family, &losing(loss), seed);
            kernel.set_features(kernels);
            transfer(&mut host, &kernel, opener, like_linux(ours), len, &what);
            assert_agreed(&host, opener, ours, kernels, loss > 0.0);
            let (up, down) = (lost(&host.sent().1), lost(&host.heard().1));
            assert_eq!(up > 0 && down > 0, loss > 0.0, "{what}");
            assert_eq!(host.counters().checksum, 0, "{what}");
        }
    }
}

#[test]
fn transfers_both_ways_are_complete_with_every_combination_of_features() {
    if ready() {
        transfers_with_all_combinations(0.0, 1_000_003, 1);
    }
}

#[test]
fn transfers_both_ways_are_complete_at_five_per_cent_loss_in_each_direction() {
    if ready() {
        transfers_with_all_combinations(LOSS, 300_007, 2);
    }
}

#[test]
fn a_megabyte_each_way_is_complete_at_five_per_cent_loss() {
    if !ready() {
        return;
    }
    for (family, opener) in [(Family::V4, Opener::We), (Family::V6, Opener::TheKernel)] {
        let (mut host, kernel) = lab(family, &losing(LOSS), 3);
        let config = like_linux(Features::ALL);
        let what = format!("{family:?}, {opener:?} open, seed 3");
        transfer(&mut host, &kernel, opener, config, 1_000_003, &what);
        assert!(host.counters().fast_recoveries > 0, "{:?}", host.counters());
    }
}

#[test]
fn every_preset_completes_transfers_both_ways_under_loss() {
    if !ready() {
        return;
    }
    for (name, preset) in TcpPreset::ALL {
        let (mut host, kernel) = lab(Family::V4, &losing(LOSS), 4);
        let what = format!("{name}, seed 4");
        transfer(
            &mut host,
            &kernel,
            Opener::We,
            quick(preset),
            100_003,
            &what,
        );
    }
}

#[test]
fn transfers_with_random_settings_over_random_links_are_complete() {
    if !ready() {
        return;
    }
    for seed in 100..112 {
        let mut rng = Rng::from_seed(seed);
        let mut link = losing(pick(&mut rng, &[0.0, 0.02, LOSS]));
        if rng.chance(0.3) {
            link.duplicate = Probability::new(0.05).expect("a share");
        }
        if rng.chance(0.3) {
            // Up to 4 ms: some overtake others.
            link.jitter = Some(Jitter {
                spread: link.delay,
                order: PacketOrder::Free,
            });
        }
        let all: Vec<Features> = Features::combinations().collect();
        let buffers = [3_000, 20_000, 200_000, 4 << 20].map(ByteCount);
        let config = TcpConfig {
            nagle: rng.chance(0.5),
            ecn: rng.chance(0.5),
            receive_buffer: pick(&mut rng, &buffers),
            send_buffer: pick(&mut rng, &buffers),
            ..like_linux(pick(&mut rng, &all))
        };
        let kernels = pick(&mut rng, &all);
        let family = pick(&mut rng, &[Family::V4, Family::V6]);
        let opener = pick(&mut rng, &[Opener::We, Opener::TheKernel]);
        let len = pick(&mut rng, &[1, 1_000, 30_000, 300_000]);
        let what = format!("seed {seed}: {family:?}, {opener:?} open, {kernels:?}, {config:?}");
        let (mut host, kernel) = lab(family, &link, seed);
        kernel.set_features(kernels);
        transfer(&mut host, &kernel, opener, config, len, &what);
    }
}

fn pick<T: Clone>(rng: &mut Rng, among: &[T]) -> T {
    let index = usize::try_from(rng.below(among.len() as u64)).expect("in range");
    among[index].clone()
}

#[test]
fn damaged_segments_are_noticed_by_both_sides_and_sent_again() {
    if !ready() {
        return;
    }
    // One full packet in 24 is hit.
    let rate = BitErrorRate::new(3.5e-6).expect("a rate");
    let bits = BitErrors::Independent(rate);
    for family in [Family::V4, Family::V6] {
        let (mut host, kernel) = lab(family, &damaging(bits), 5);
        let config = like_linux(Features::ALL);
        let what = format!("{family:?}, seed 5");
        transfer(&mut host, &kernel, Opener::We, config, 1_000_003, &what);
        assert!(host.counters().checksum > 0, "{:?}", host.counters());
        assert!(kernel.checksum_errors() > 0, "{what}");
    }
}

#[test]
fn one_direction_goes_on_after_the_kernel_has_finished_the_other() {
    if !ready() {
        return;
    }
    for (opener, loss) in [(Opener::We, 0.0), (Opener::TheKernel, LOSS)] {
        let (mut host, kernel) = lab(Family::V4, &losing(loss), 6);
        let (ours, kernels) = (octets("ours", 200_003), octets("the kernel's", 50_021));
        host.listen(like_linux(Features::ALL), Flow::default());
        let what = format!("{opener:?} open, loss {loss}, seed 6");
        let listener = kernel.listen(KERNEL_PORT, None);
        if opener == Opener::We {
            host.connect(KERNEL_PORT, like_linux(Features::ALL), Flow::default());
        }
        let (finished, kernels_end) = (kernels.clone(), kernel.clone());
        std::thread::scope(|scope| {
            let came = scope.spawn(move || {
                let stream = match opener {
                    Opener::We => accept(&listener),
                    Opener::TheKernel => kernels_end.connect(OUR_PORT.0, None).expect("heard"),
                };
                write_all(&stream, &finished);
                stream.shutdown(Shutdown::Write).expect("still open");
                read_all(&stream)
            });
            host.run_until(&what, |host| host.flow().peer_finished);
            assert_same(&what, &host.flow().received, &kernels);
            let state = host.status().map(|status| status.state);
            assert_eq!(state, Some(TcpState::CloseWait), "{what}");
            host.change_flow(|flow| {
                flow.octets.clone_from(&ours);
                flow.closes = true;
            });
            host.run_until(&what, |host| is_over(host) && came.is_finished());
            assert_same(&what, &came.join().expect("it reads to the end"), &ours);
        });
        assert_eq!(host.flow().closed, Some(TcpCloseReason::Finished));
    }
}

#[test]
fn the_kernel_goes_on_after_we_have_finished_our_direction() {
    if !ready() {
        return;
    }
    for (opener, loss) in [(Opener::TheKernel, 0.0), (Opener::We, LOSS)] {
        let (mut host, kernel) = lab(Family::V4, &losing(loss), 7);
        let (ours, kernels) = (octets("ours", 50_021), octets("the kernel's", 200_003));
        let what = format!("{opener:?} open, loss {loss}, seed 7");
        let config = like_linux(Features::ALL);
        let flow = Flow::sending(&ours);
        let came = connected(&mut host, &kernel, opener, config, flow, &what, |stream| {
            let came = read_all(&stream);
            write_all(&stream, &kernels);
            came
        });
        assert_same(&what, &came, &ours);
        assert_same(&what, &host.flow().received, &kernels);
        assert_eq!(host.flow().closed, Some(TcpCloseReason::Finished));
    }
}

#[test]
fn a_port_where_nobody_listens_answers_with_a_reset() {
    if !ready() {
        return;
    }
    for family in [Family::V4, Family::V6] {
        let (mut host, kernel) = lab(family, &losing(0.0), 8);
        host.connect(KERNEL_PORT, like_linux(Features::ALL), Flow::default());
        host.run_until("the kernel refuses", is_over);
        assert_eq!(host.flow().closed, Some(TcpCloseReason::Refused));
        assert_eq!(host.heard().0.resets, 1);

        let connect = || kernel.connect(OUR_PORT.0, None).map(drop);
        let refused = beside(&mut host, "we refuse", connect, |_| true);
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::ConnectionRefused);
        assert_eq!(host.counters().strangers, 1);
    }
}

#[test]
fn a_connection_that_either_side_aborts_is_reset_at_the_other() {
    if !ready() {
        return;
    }
    let (mut host, kernel) = lab(Family::V4, &losing(0.0), 9);
    host.listen(like_linux(Features::ALL), Flow::default());
    std::thread::scope(|scope| {
        let kernels = scope.spawn(|| {
            let mut stream = kernel.connect(OUR_PORT.0, None).expect("we listen");
            stream.read(&mut [0; 1])
        });
        host.run_until("established", |host| host.flow().established);
        host.abort();
        host.run_until("the kernel hears", |_| kernels.is_finished());
        let heard = kernels.join().expect("no panic").unwrap_err();
        assert_eq!(heard.kind(), ErrorKind::ConnectionReset);
    });

    host.listen(like_linux(Features::ALL), Flow::default());
    let abort = || {
        let stream = kernel.connect(OUR_PORT.0, None).expect("we listen");
        let lingers = SockRef::from(&stream).set_linger(Some(Duration::ZERO));
        lingers.expect("close(2) resets then");
    };
    beside(&mut host, "we hear of a reset", abort, is_over);
    assert_eq!(host.flow().closed, Some(TcpCloseReason::Reset));
}

#[test]
fn a_kernel_that_reads_slowly_shuts_its_window_and_gets_everything() {
    /// Shut windows seen: the first, and the answers to two probes.
    const SHUT: u64 = 3;
    if !ready() {
        return;
    }
    for loss in [0.0, LOSS] {
        let (mut host, kernel) = lab(Family::V4, &losing(loss), 10);
        let ours = octets("ours", 150_001);
        let what = format!("loss {loss}, seed 10");
        let listener = kernel.listen(KERNEL_PORT, Some(8_192));
        let flow = Flow::sending(&ours);
        host.connect(KERNEL_PORT, like_linux(Features::ALL), flow);
        let (allow, allowed) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let came = scope.spawn(move || {
                let mut stream = accept(&listener);
                allowed.recv().expect("the test goes on");
                let (mut came, mut some) = (Vec::new(), [0; 3_001]);
                loop {
                    let len = stream.read(&mut some).expect("the connection holds");
                    if len == 0 {
                        return came;
                    }
                    came.extend_from_slice(&some[..len]);
                    // No value comes: this is a pause between reads.
                    let _pause = allowed.recv_timeout(Duration::from_millis(2));
                }
            });
            host.run_until(&what, |host| host.heard().0.shut >= SHUT);
            assert!(!host.status().expect("it waits").all_acked, "{what}");
            allow.send(()).expect("it waits");
            host.run_until(&what, |host| is_over(host) && came.is_finished());
            assert_same(&what, &came.join().expect("it reads to the end"), &ours);
        });
        assert_eq!(host.flow().closed, Some(TcpCloseReason::Finished));
    }
}

#[test]
fn the_kernel_waits_for_us_when_we_read_nothing() {
    /// As above.
    const SHUT: u64 = 3;
    if !ready() {
        return;
    }
    for loss in [0.0, LOSS] {
        let (mut host, kernel) = lab(Family::V6, &losing(loss), 11);
        let kernels = octets("the kernel's", 150_001);
        let what = format!("loss {loss}, seed 11");
        let config = TcpConfig {
            receive_buffer: ByteCount(20_000),
            ..like_linux(Features::ALL)
        };
        host.listen(
            config,
            Flow {
                pauses: true,
                closes: true,
                ..Flow::default()
            },
        );
        std::thread::scope(|scope| {
            let came = scope.spawn(|| {
                let stream = kernel.connect(OUR_PORT.0, None).expect("we listen");
                exchange(&stream, &kernels)
            });
            host.run_until(&what, |host| host.sent().0.shut >= SHUT);
            assert!(host.flow().received.is_empty(), "{what}");
            host.change_flow(|flow| flow.pauses = false);
            host.run_until(&what, |host| is_over(host) && came.is_finished());
            assert!(came.join().expect("it reads to the end").is_empty());
        });
        assert_same(&what, &host.flow().received, &kernels);
        assert_eq!(host.flow().closed, Some(TcpCloseReason::Finished));
    }
}
