//! The configurations that come with the project.

use crate::binaries::repository;

/// A file in `configs` with `@name@` in the place of ports, and each first text of `changes` replaced by the second.
///
/// # Panics
/// If there is no such file, or a text to be replaced is not in it.
#[must_use]
pub fn shipped(file: &str, changes: &[(&str, &str)]) -> String {
    let path = repository().join("configs").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    changes.iter().fold(with_named_ports(&text), |text, (from, to)| {
        assert!(text.contains(from), "`{from}` is not in {file}");
        text.replace(from, to)
    })
}

/// Puts `@name@` in the place of every port, the same name for the same port, `@admin@` for that of the admin server.
#[must_use]
pub fn with_named_ports(text: &str) -> String {
    let mut named = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(':') {
        let (before, after) = rest.split_at(at + 1);
        named.push_str(before);
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        let host = before[..at].rsplit([' ', '"', '/', '\'']).next().unwrap_or_default();
        let is_port =
            (2..=5).contains(&digits) && (host == "localhost" || host.split('.').count() == 4 || host.ends_with(']'));
        rest = &after[if is_port { digits } else { 0 }..];
        if is_port {
            let line = named.lines().last().unwrap_or_default();
            let name =
                if line.contains("bind_address") { "admin".to_owned() } else { format!("p{}", &after[..digits]) };
            named.push_str(&format!("@{name}@"));
        }
    }
    named + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ports are found, whatever stands around them.
    #[test]
    fn ports_are_found() {
        let text = "  http_admin: {bind_address: \"127.0.0.1:8085\"}\n a: {listening_addr: \"0.0.0.0:514\"}\n \
                    b: http://localhost:4317/x # 12:00:05\n c: \"[::]:514\" window: 5s\n";
        assert_eq!(
            with_named_ports(text),
            "  http_admin: {bind_address: \"127.0.0.1:@admin@\"}\n a: {listening_addr: \"0.0.0.0:@p514@\"}\n \
             b: http://localhost:@p4317@/x # 12:00:05\n c: \"[::]:@p514@\" window: 5s\n"
        );
    }
}
