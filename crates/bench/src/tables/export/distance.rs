//! A server far away: connections to it whose answers come late.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// From the end of a request to its answer, beside what the server takes for it.
pub(super) const ROUND_TRIP: Duration = Duration::from_millis(20);
/// Most bytes passed on at once.
const CHUNK: usize = 256 * 1024;

/// Listens for connections to `server`, whose answers come a round trip later. The thread ends with the process.
pub(super) fn to(server: SocketAddr) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    drop(thread::Builder::new().name("distance".into()).spawn(move || {
        // A client that cannot be connected finds its connection closed.
        listener.incoming().flatten().for_each(|client| drop(connect(client, server)));
    })?);
    Ok(address)
}

fn connect(client: TcpStream, server: SocketAddr) -> io::Result<()> {
    let server = TcpStream::connect(server)?;
    for end in [&client, &server] {
        end.set_nodelay(true)?;
    }
    let (requests, to_server) = (client.try_clone()?, server.try_clone()?);
    drop(thread::Builder::new().spawn(move || pass_on(requests, to_server))?);
    let (sender, late) = mpsc::channel::<(Instant, Vec<u8>)>();
    drop(thread::Builder::new().spawn(move || read(server, &sender))?);
    drop(thread::Builder::new().spawn(move || write(client, &late))?);
    Ok(())
}

fn pass_on(mut from: TcpStream, mut to: TcpStream) {
    let mut room = vec![0; CHUNK];
    while let Ok(read @ 1..) = from.read(&mut room) {
        if to.write_all(&room[..read]).is_err() {
            break;
        }
    }
    // Whoever reads from it learns of the end; that it is gone already is no harm.
    let _ = to.shutdown(Shutdown::Write);
}

fn read(mut from: TcpStream, late: &mpsc::Sender<(Instant, Vec<u8>)>) {
    let mut room = vec![0; CHUNK];
    while let Ok(read @ 1..) = from.read(&mut room) {
        if late.send((Instant::now() + ROUND_TRIP, room[..read].to_vec())).is_err() {
            return;
        }
    }
}

fn write(mut to: TcpStream, late: &mpsc::Receiver<(Instant, Vec<u8>)>) {
    for (due, bytes) in late {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if to.write_all(&bytes).is_err() {
            return;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a server says comes whole and late, and its end too.
    #[test]
    fn late() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = to(server.local_addr().unwrap()).unwrap();
        let answering = thread::spawn(move || {
            let (mut client, _) = server.accept().unwrap();
            let mut request = [0; 4];
            client.read_exact(&mut request).unwrap();
            client.write_all(&request.repeat(1_000)).unwrap();
        });
        let mut client = TcpStream::connect(address).unwrap();
        let began = Instant::now();
        client.write_all(b"abcd").unwrap();
        let mut answer = Vec::new();
        let read = client.read_to_end(&mut answer).unwrap();
        assert!(began.elapsed() >= ROUND_TRIP);
        assert_eq!((read, &answer[3_996..]), (4_000, &b"abcd"[..]));
        answering.join().unwrap();
    }
}
