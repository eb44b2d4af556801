//! `fulmar keygen` makes keys that work, overwrites nothing and says what is wrong.

use crate::processes::{run, said};
use fulmar_net::session::{PresetKey, PublicKey, SecretKey, read_preset_key, read_secret_key};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Output;

fn printed(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", said(output));
    String::from_utf8(output.stdout.clone()).expect("text")
}

#[test]
fn a_secret_key_is_written_for_its_owner_and_its_public_key_printed() {
    let place = tempfile::tempdir().expect("a place");
    let file = place.path().join("ground.key");
    let public = printed(&run(&format!("keygen {}", file.display())));
    let key = read_secret_key(&file).expect("a key");
    assert_eq!(public.parse::<PublicKey>(), Ok(key.public()));
    let again = printed(&run(&format!("keygen --public {}", file.display())));
    assert_eq!(again, public);
}

#[test]
fn a_preset_key_is_written_and_not_printed() {
    let place = tempfile::tempdir().expect("a place");
    let file = place.path().join("link.preset");
    let out = printed(&run(&format!("keygen --preset {}", file.display())));
    assert_eq!(out, "");
    read_preset_key(&file).expect("a key");
}

#[test]
fn keys_on_stdout_are_keys() {
    let secret = printed(&run("keygen -"));
    assert!(secret.parse::<SecretKey>().is_ok());
    let preset = printed(&run("keygen --preset -"));
    assert!(preset.parse::<PresetKey>().is_ok());
    assert_ne!(secret, preset);
}

#[test]
fn what_is_wrong_is_said_in_one_line_with_its_code() {
    let place = tempfile::tempdir().expect("a place");
    let file = place.path().join("a.key");
    fs::write(&file, "mine").expect("written");
    let fails = |arguments: String, code, word: &str| {
        let output = run(&arguments);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(word) && said.lines().count() == 1, "{said}");
        assert!(output.stdout.is_empty());
    };
    fails(format!("keygen {}", file.display()), 2, "exists");
    assert_eq!(fs::read_to_string(&file).expect("there"), "mine");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("changed");
    fails(
        format!("keygen --public {}", file.display()),
        5,
        "chmod 600",
    );
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("changed");
    fails(format!("keygen --public {}", file.display()), 2, "line 1");
    let nowhere = place.path().join("no/such.key");
    fails(format!("keygen {}", nowhere.display()), 5, "such.key");
}
