//! TUN devices: packets that the kernel sends to one are read here, and packets written here are
//! received by the kernel.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use rustix::ioctl::{Getter, Setter, ioctl, opcode};

/// A TUN device that carries bare IP packets, or a TAP device that carries Ethernet frames. It
/// vanishes when this is dropped, unless it is persistent.
#[derive(Debug)]
pub struct Tun {
    file: File,
}

/// `struct ifreq` of `<linux/if.h>` as `TUNSETIFF` reads it: a name, flags, and the remainder of a
/// union.
#[repr(C)]
struct Request {
    name: [u8; 16],
    flags: u16,
    rest: [u8; 22],
}

/// `IFF_TUN | IFF_NO_PI` (`<linux/if_tun.h>`): IP packets without a prefix of four bytes.
const IFF_TUN_NO_PI: u16 = 0x0001 | 0x1000;

/// `IFF_PERSIST`: the device exists without a program.
const IFF_PERSIST: u16 = 0x0800;

/// `IFF_TAP | IFF_NO_PI`: Ethernet frames without a prefix and without frame check sequence.
const IFF_TAP_NO_PI: u16 = 0x0002 | 0x1000;

impl Tun {
    /// Makes a device in the network namespace of the calling thread.
    ///
    /// # Errors
    /// `/dev/net/tun` is not accessible, or the name is taken.
    pub fn new(name: &str) -> io::Result<Self> {
        Self::with_flags(name, IFF_TUN_NO_PI)
    }

    /// Attaches to a persistent device in the network namespace of the calling thread. While no
    /// program is attached, the kernel drops the packets for it.
    ///
    /// # Errors
    /// There is no such persistent device ([`io::ErrorKind::NotFound`]), another program is
    /// attached ([`io::ErrorKind::ResourceBusy`]), it belongs to another user, or `/dev/net/tun` is
    /// not accessible.
    pub fn attach(name: &str) -> io::Result<Self> {
        let tun = Self::with_flags(name, IFF_TUN_NO_PI)?;
        // TUNSETIFF makes a device where there is none: this one vanishes again.
        let is_persistent = tun.flags()? & IFF_PERSIST != 0;
        if is_persistent { Ok(tun) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    #[expect(unsafe_code, reason = "an ioctl that no crate wraps without bringing a runtime")]
    fn flags(&self) -> io::Result<u16> {
        // SAFETY: TUNGETIFF writes one `struct ifreq`, whose size and layout `Request` has.
        let request: Request = unsafe {
            ioctl(&self.file, Getter::<{ opcode::read::<libc::c_uint>(b'T', 210) }, Request>::new())
        }?;
        Ok(request.flags)
    }

    /// Makes a device for Ethernet frames in the network namespace of the calling thread. A VLAN
    /// tag is a part of a frame that is read, and the kernel removes the tag of a frame that is
    /// written.
    ///
    /// # Errors
    /// `/dev/net/tun` is not accessible, or the name is taken.
    pub fn tap(name: &str) -> io::Result<Self> {
        Self::with_flags(name, IFF_TAP_NO_PI)
    }

    #[expect(unsafe_code, reason = "an ioctl that no crate wraps without bringing a runtime")]
    fn with_flags(name: &str, flags: u16) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_NONBLOCK);
        let file = options.open("/dev/net/tun")?;
        let mut request = Request { name: [0; 16], flags, rest: [0; 22] };
        let length = name.len().min(15);
        request.name[..length].copy_from_slice(&name.as_bytes()[..length]);
        // SAFETY: TUNSETIFF reads one `struct ifreq`, whose size and layout `Request` has.
        unsafe {
            let set = Setter::<{ opcode::write::<libc::c_int>(b'T', 202) }, Request>::new(request);
            ioctl(&file, set)?;
        }
        Ok(Self { file })
    }

    /// Whether an error of [`read`](Self::read) or [`write`](Self::write) means that the device was
    /// deleted.
    #[must_use]
    pub fn is_gone(error: &io::Error) -> bool {
        matches!(error.raw_os_error(), Some(libc::EBADFD | libc::ENODEV | libc::EIO))
    }

    /// Reads the next packet that the kernel has sent into `into` and returns its length; `None`
    /// when there is none.
    ///
    /// # Errors
    /// The device was deleted.
    pub fn read(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        match rustix::io::read(&self.file, into) {
            Ok(length) => Ok(Some(length)),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Passes a packet to the kernel, which drops a malformed one, as it does with packets of any
    /// network card.
    ///
    /// # Errors
    /// The device was deleted, or is down (`EIO` of `tun_get_user`).
    pub fn write(&self, packet: &[u8]) -> io::Result<()> {
        use rustix::io::Errno;
        match rustix::io::write(&self.file, packet) {
            Ok(_) | Err(Errno::INVAL | Errno::AGAIN | Errno::INTR | Errno::NOBUFS) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
