//! Names of files in a configuration count from its folder, wherever the gateway is started.

use super::BASE;
use crate::processes::{fulmar, run, said};
use std::fs;
use std::path::Path;
use std::process::Output;

/// A configuration in `place`/conf with a key beside it, and a working directory beside that folder.
fn furnish(place: &Path) {
    for folder in ["conf", "work"] {
        fs::create_dir(place.join(folder)).expect("room");
    }
    let key = place.join("conf/here.key");
    let made = run(&format!("keygen {}", key.display()));
    assert!(made.status.success(), "{}", said(&made));
    let other = run(&format!("keygen {}", place.join("other.key").display()));
    let public = String::from_utf8(other.stdout).expect("text");
    let named = format!("name = \"there\"\npublic_key = \"{}\"", public.trim());
    let text = BASE
        .replacen(
            "kind = \"none\"",
            "kind = \"noise\"\nprivate_key_file = \"here.key\"",
            1,
        )
        .replacen("name = \"there\"", &named, 1)
        .replacen("[limits]", "[custody]\ndirectory = \"kept\"\n[limits]", 1);
    fs::write(place.join("conf/gateway.toml"), text).expect("room");
}

/// A command over the configuration from the working directory.
fn from_work(place: &Path, command: &str) -> Output {
    let mut command = fulmar(&format!("{command} -c ../conf/gateway.toml"));
    command.current_dir(place.join("work"));
    command.output().expect("it runs")
}

#[test]
fn they_count_from_the_folder_of_the_configuration() {
    let place = tempfile::tempdir().expect("room");
    let place = place.path();
    furnish(place);
    let checked = from_work(place, "gateway --check");
    assert_eq!(checked.status.code(), Some(0), "{}", said(&checked));
    let words = String::from_utf8(checked.stdout).expect("text");
    for name in ["here.key", "kept"] {
        let whole = place.join("work/../conf").join(name);
        assert!(words.contains(&*whole.to_string_lossy()), "{name}: {words}");
    }
}

#[test]
fn a_configuration_of_standard_input_has_no_folder_and_names_count_from_the_working_directory() {
    let place = tempfile::tempdir().expect("room");
    let place = place.path();
    furnish(place);
    let key = place.join("work/here.key");
    fs::rename(place.join("conf/here.key"), &key).expect("it is there");
    let mut command = fulmar("gateway --check -c /dev/stdin");
    let configuration = fs::File::open(place.join("conf/gateway.toml")).expect("it is there");
    command.current_dir(place.join("work")).stdin(configuration);
    let checked = command.output().expect("it runs");
    assert_eq!(checked.status.code(), Some(0), "{}", said(&checked));
    let words = String::from_utf8(checked.stdout).expect("text");
    assert!(words.contains(&*key.to_string_lossy()), "{words}");
}

#[test]
fn a_key_that_lies_in_the_working_directory_is_named_and_no_second_one_is_advised() {
    let place = tempfile::tempdir().expect("room");
    let place = place.path();
    furnish(place);
    let (tried, lies) = (place.join("conf/here.key"), place.join("work/here.key"));
    let commands = ["gateway --check", "gateway", "doctor"];
    let all_said = |command: &str| {
        let output = from_work(place, command);
        let code = output.status.code();
        assert!(code.is_some_and(|code| code != 0), "{command}: {code:?}");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        // Of the terminal's width.
        let words = format!("{text}{}", said(&output));
        words.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    fs::rename(&tried, &lies).expect("it is there");
    let looked_at = place.join("work/../conf/here.key");
    for command in commands {
        let words = all_said(command);
        for path in [&looked_at, &lies] {
            assert!(
                words.contains(&*path.to_string_lossy()),
                "{command}: {words}"
            );
        }
        assert!(!words.contains("keygen"), "{command}: {words}");
    }
    fs::remove_file(&lies).expect("it is there");
    for command in commands {
        let words = all_said(command);
        let make = format!("fulmar keygen {}", looked_at.display());
        assert!(words.contains(&make), "{command}: {words}");
    }
}
