//! A network between two programs: passes bytes on until it is told to be slow, silent or broken.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// How the network is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Pass,
    /// Each chunk of up to 4 KiB takes so long.
    Slow(Duration),
    /// Nothing arrives, and nobody is told.
    BlackHole,
    /// Connections end and none is taken.
    Cut,
    /// Connections that are there end by a reset.
    Reset,
}

#[derive(Debug, Clone)]
pub(crate) struct Proxy {
    address: SocketAddr,
    targets: Arc<Mutex<Vec<SocketAddr>>>,
    mode: Arc<watch::Sender<Mode>>,
}

const CHUNK: usize = 4 << 10;

impl Proxy {
    /// Listens on a free port; a connection goes to the next of the targets that takes it.
    pub(crate) async fn start(targets: Vec<SocketAddr>) -> Result<Self, String> {
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(|error| error.to_string())?;
        let proxy = Self {
            address: listener.local_addr().map_err(|error| error.to_string())?,
            targets: Arc::new(Mutex::new(targets)),
            mode: Arc::new(watch::Sender::new(Mode::Pass)),
        };
        tokio::spawn(proxy.clone().listen(listener));
        Ok(proxy)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn lead_to(&self, targets: Vec<SocketAddr>) {
        *self.targets.lock().unwrap_or_else(PoisonError::into_inner) = targets;
    }

    fn set(&self, mode: Mode) {
        self.mode.send_replace(mode);
    }

    /// Is so for a while.
    pub(crate) async fn disturb(&self, mode: Mode, lasts: Duration) {
        self.set(mode);
        tokio::time::sleep(lasts).await;
        self.set(Mode::Pass);
    }

    async fn listen(self, listener: TcpListener) {
        for turn in 0_usize.. {
            let Ok((client, _)) = listener.accept().await else { continue };
            if matches!(*self.mode.borrow(), Mode::Cut | Mode::Reset) {
                let _ = client.set_zero_linger();
                continue;
            }
            tokio::spawn(self.clone().carry(client, turn));
        }
    }

    async fn carry(self, client: TcpStream, turn: usize) {
        let Some(server) = self.connect(turn).await else {
            let _ = client.set_zero_linger();
            return;
        };
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
            (client.into_split(), server.into_split());
        let mut broken = self.mode.subscribe();
        let reset = tokio::select! {
            () = self.pump(&mut from_client, &mut to_server) => false,
            () = self.pump(&mut from_server, &mut to_client) => false,
            mode = broken.wait_for(|mode| matches!(mode, Mode::Cut | Mode::Reset)) => {
                mode.is_ok_and(|mode| *mode == Mode::Reset)
            }
        };
        if reset {
            let _ = (to_client.as_ref().set_zero_linger(), to_server.as_ref().set_zero_linger());
        }
    }

    async fn connect(&self, turn: usize) -> Option<TcpStream> {
        let targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for step in 0..targets.len() {
            if let Ok(stream) = TcpStream::connect(targets[(turn + step) % targets.len()]).await {
                return Some(stream);
            }
        }
        None
    }

    /// Until one side ends; what was read is passed on before.
    async fn pump(&self, from: &mut OwnedReadHalf, to: &mut OwnedWriteHalf) {
        let mut buffer = [0; CHUNK];
        let mut mode = self.mode.subscribe();
        loop {
            let Ok(length @ 1..) = from.read(&mut buffer).await else { return };
            let now = *mode.borrow_and_update();
            if let Mode::Slow(pause) = now {
                tokio::time::sleep(pause).await;
            }
            // As after retransmission: what was sent into the hole arrives when it closes.
            if mode.wait_for(|mode| *mode != Mode::BlackHole).await.is_err() {
                return;
            }
            if to.write_all(&buffer[..length]).await.is_err() {
                return;
            }
        }
    }
}
