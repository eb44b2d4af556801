//! Real clients and servers through two gateways over a lossy link: curl and nginx, iperf3, scp and
//! sshd, dig and dnsmasq, a stream of small UDP messages, 200 fetches at once.
//!
//! Method: four network namespaces with the kernel's own TCP and UDP, `fulmar emulate --tun` as the
//! link at 10 mbit and 5 ms, security on. Everything that arrives is compared with what was sent. A
//! covering set runs here; `make field` runs every combination and writes a page. Needs root.

use crate::field::{PROGRAMS, Site, Way};
use crate::rig::ready;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// The file's size in the covering set; `make field` fetches 20 MB.
const FILE_BYTES: usize = 2_000_000;
const FIELD_BYTES: usize = 20_000_000;

const V4: bool = false;
const V6: bool = true;

/// Every program by this way. SOCKS5 clients are curl and ssh; iperf3 and dig know no proxy.
fn everything(site: &mut Site, way: Way, v6: bool) -> String {
    let mut row = String::new();
    let mut cell = |text: String| write!(row, " {text} |").expect("it is memory");
    let seconds = |took: std::time::Duration| format!("{:.1} s", took.as_secs_f64());
    let knows_proxies = way == Way::Socks;
    cell(seconds(site.web(way, v6)));
    cell(seconds(site.parallel(way, v6)));
    cell(seconds(site.ssh(way, v6)));
    if knows_proxies {
        cell("-".to_owned());
        cell("-".to_owned());
        cell("-".to_owned());
    } else {
        cell(seconds(site.iperf(way, v6)));
        cell(seconds(site.dns(way, v6)));
        cell(format!("{} of 300", site.rtp(way, v6)));
    }
    row
}

fn covers(loss_percent: u32, carrier_v6: bool, ways: &[(Way, bool)]) {
    if !ready(PROGRAMS) {
        return;
    }
    let mut site = Site::start(loss_percent, carrier_v6, FILE_BYTES);
    site.warm_up();
    for (way, v6) in ways {
        eprintln!("{loss_percent} %, {}, IPv6 {v6}", way.name());
        everything(&mut site, *way, *v6);
    }
}

#[test]
fn all_programs_work_over_a_clean_link() {
    covers(0, V4, &[(Way::Forward, V4), (Way::Transparent, V6)]);
}

#[test]
fn all_programs_work_at_5_percent_loss() {
    covers(5, V6, &[(Way::Socks, V4), (Way::Forward, V6)]);
}

#[test]
fn all_programs_work_at_20_percent_loss() {
    covers(20, V6, &[(Way::Transparent, V4), (Way::Socks, V6)]);
}

#[test]
fn all_programs_work_at_40_percent_loss() {
    covers(40, V4, &[(Way::Forward, V4), (Way::Transparent, V6)]);
}

#[test]
#[ignore = "20 minutes: make field"]
fn every_way_at_every_loss() {
    assert!(ready(PROGRAMS), "needs root and the programs");
    let mut page = String::from(
        "# Real programs through two gateways\n\n\
         `make field`: curl fetches 20 MB and 200 files of 5 kB at once from nginx, scp copies 5 MB, iperf3 sends for 3 s,\n\
         dig asks dnsmasq twice, 300 UDP messages of 172 octets go out at 3 ms in mode unreliable; all else goes in mode\n\
         reliable. The times are whole commands. `fulmar emulate --tun` at 10 mbit, 5 ms, loss both ways; security on; the\n\
         gateways meet over the same IP version as the clients. All content compared, but for iperf3's, whose receiver\n\
         counts octets. Debug build.\n\n\
         | loss | IP | way | 20 MB | 200 fetches | scp | iperf3 | dig | UDP messages |\n|---|---|---|---|---|---|---|---|---|\n",
    );
    for loss in [0, 5, 20, 40] {
        for v6 in [V4, V6] {
            let mut site = Site::start(loss, v6, FIELD_BYTES);
            site.warm_up();
            for way in Way::ALL {
                let row = everything(&mut site, way, v6);
                let version = if v6 { 6 } else { 4 };
                writeln!(page, "| {loss} % | {version} | {} |{row}", way.name())
                    .expect("it is memory");
                eprintln!("{loss} % {version} {}{row}", way.name());
            }
        }
    }
    page.push_str(
        "\nUDP by SOCKS5 (UDP ASSOCIATE) is tested in `crates/cli/tests/gateway_proxies.rs`.\n",
    );
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::write(root.join("docs/measurements/gateway-field.md"), page).expect("room");
}
