//! The demonstration's TCP carries the file over the clean link, and over the lossy one as much as it can in time.
//!
//! Method: the binary from outside. 1 MB takes 1.6 s at the link's rate, and TCP has 5.2 s. It would have to carry
//! 1.5 Mbit/s where one packet in eight is lost, which is twice what TCP reaches there.

use crate::processes::{Place, Running, fulmar, run, said};

#[test]
fn tcp_is_cut_off_on_the_lossy_link_and_what_had_come_is_intact() {
    let place = Place::with(1_000_000);
    let (file, out) = (place.file(), place.path("out"));
    let flags = format!("--modes tcp-cubic --file {file} --out {}", out.display());
    let mut demo = Running::start(fulmar(&format!("demo {flags} --json")));
    let rows = demo.records();
    let (status, said) = demo.end();
    assert_eq!(status.code(), Some(0), "{said}");
    let [clean, lossy] = &rows[..] else {
        panic!("{rows:?}");
    };
    for row in &rows {
        assert_eq!(row["verified"], true, "{row}");
        assert_eq!(row["error"], serde_json::Value::Null, "{row}");
    }
    assert_eq!(clean["cut_off"], false);
    assert_eq!(clean["delivered_bytes"], 1_000_000);
    assert_eq!(lossy["cut_off"], true);
    let delivered = lossy["delivered_bytes"].as_u64();
    assert!(
        delivered.is_some_and(|bytes| 0 < bytes && bytes < 1_000_000),
        "{lossy}"
    );
}

#[test]
fn a_program_that_no_path_leads_to_is_named_in_the_last_line() {
    let place = Place::with(1_000);
    let (file, out) = (place.file(), place.path("out"));
    let output = run(&format!(
        "demo --modes plain-udp --file {file} --out {}",
        out.display()
    ));
    let said = said(&output);
    let own = assert_cmd::cargo::cargo_bin!("fulmar");
    let directory = own.parent().expect("a directory").display();
    let last = said.lines().last().unwrap_or_default();
    assert!(
        last.contains(&format!("the program is {}; ", own.display()))
            && last.contains(&format!("export PATH=\"{directory}:$PATH\"")),
        "{said}"
    );
}
