//! The bytes of one connection, under the rule of whose turn it is.

use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use socket2::Socket;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_rustls::server::TlsStream;

use super::Connection;
use super::stand_in::StandIn;

/// Plain or encrypted bytes.
pub trait Stream: AsyncRead + AsyncWrite + Unpin {
    /// The socket once more, where what is written there reaches the client as it is.
    fn socket(&self) -> Option<Socket>;
}

impl Stream for TcpStream {
    fn socket(&self) -> Option<Socket> {
        socket2::SockRef::from(self).try_clone().ok()
    }
}

impl Stream for TlsStream<TcpStream> {
    fn socket(&self) -> Option<Socket> {
        None
    }
}

/// A stream that fails once its client has taken too long.
pub struct Line {
    stream: Box<dyn Stream>,
    connection: Rc<Connection>,
    timer: Pin<Box<Sleep>>,
    stand_in: StandIn,
}

impl Line {
    /// The stream of `connection`.
    pub fn new(stream: Box<dyn Stream>, connection: Rc<Connection>) -> Self {
        Self { stream, connection, timer: Box::pin(sleep_until(Instant::now())), stand_in: StandIn::default() }
    }

    /// Its connection.
    pub fn connection(&self) -> &Rc<Connection> {
        &self.connection
    }

    /// What a waiting stream answers: nothing yet, or that the client took too long.
    fn wait<R>(&mut self, context: &mut Context<'_>) -> Poll<Result<R>> {
        if self.connection.is_over(context) {
            return Poll::Ready(Err(Error::new(ErrorKind::ConnectionAborted, "others need the connection more")));
        }
        self.connection.wake_at_change(context.waker());
        let Some(deadline) = self.connection.deadline() else { return Poll::Pending };
        let deadline = Instant::from_std(deadline);
        if self.timer.deadline() != deadline {
            self.timer.as_mut().reset(deadline);
        }
        match self.timer.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(Error::new(ErrorKind::TimedOut, "the client took too long"))),
            Poll::Pending => Poll::Pending,
        }
    }

    fn poll_stand_in(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        while !self.stand_in.waiting().is_empty() {
            match Pin::new(&mut self.stream).poll_write(context, self.stand_in.waiting()) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(written)) => self.stand_in.took(written),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return self.wait(context),
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Line {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        match read {
            // Also while bytes trickle in: each of them would otherwise buy time.
            Poll::Ready(Ok(())) if buffer.filled().len() > before => match self.wait::<()>(context) {
                Poll::Ready(late) => Poll::Ready(late),
                Poll::Pending => Poll::Ready(Ok(())),
            },
            Poll::Ready(Ok(())) => {
                let socket = self.stream.socket();
                self.connection.finish(socket);
                Poll::Ready(Ok(()))
            }
            Poll::Pending => self.wait(context),
            failed => failed,
        }
    }
}

impl AsyncWrite for Line {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        ready!(self.poll_stand_in(context))?;
        if self.connection.is_unasked() && self.stand_in.replace(bytes) {
            // Taken whole; what goes out instead follows with this or the next call.
            return match self.poll_stand_in(context) {
                Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
                _ => Poll::Ready(Ok(bytes.len())),
            };
        }
        match Pin::new(&mut self.stream).poll_write(context, bytes) {
            Poll::Ready(Ok(written)) => {
                self.connection.took_bytes();
                Poll::Ready(Ok(written))
            }
            Poll::Pending => self.wait(context),
            failed => failed,
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        ready!(self.poll_stand_in(context))?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        ready!(self.poll_stand_in(context))?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let first = parts.iter().find(|part| !part.is_empty()).map_or(&[][..], |part| part);
        self.poll_write(context, first)
    }
}
