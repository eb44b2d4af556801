//! Any octets as a gateway's configuration: a configuration that explains itself, or an error of one line that names the file.

#![no_main]

use fulmar_net::gateway::config::GatewayConfig;
use fulmar_net::gateway::config::explain::explain;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|octets: &[u8]| {
    let Ok(text) = core::str::from_utf8(octets) else {
        return;
    };
    match GatewayConfig::read("file.toml", text) {
        Ok(config) => assert!(explain(&config).ends_with('\n')),
        Err(error) => {
            let error = error.to_string();
            assert!(
                error.starts_with("file.toml") && error.lines().count() == 1,
                "{error}"
            );
        }
    }
});
