//! The example of the contract does what it says.

#[expect(dead_code, reason = "its main function is the program's")]
#[path = "../examples/smallest_driver.rs"]
mod example;

#[test]
fn everything_arrives_though_every_third_datagram_is_lost() {
    let sent: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let (arrived, _) = example::transfer(&sent);
    assert!(arrived == sent);
}
