package io.vendor.berth.core;

import java.net.InetAddress;
import java.util.Objects;

/** An address and the number of its leading bits that count. The bits behind them may be set. */
public record Prefix(InetAddress address, int length) {
  /** Throws IllegalArgumentException on a zone, or a length below 0 or above 32 or 128. */
  public Prefix {
    address = Family.plain(Objects.requireNonNull(address, "address"));
    if (length < 0 || length > Family.of(address).bits()) {
      throw new IllegalArgumentException(
          "A prefix length of " + length + " for " + address.getHostAddress());
    }
  }

  /** Reads {@code 10.0.0.0/24} or {@code 2001:db8::/64}. */
  public static Prefix parse(String text) {
    int slash = text.indexOf('/');
    String length = text.substring(slash + 1);
    if (slash < 0 || !length.matches("0|[1-9][0-9]{0,2}")) {
      throw new IllegalArgumentException("Not a prefix: \"" + text + "\"");
    }
    return new Prefix(Addresses.parse(text.substring(0, slash)), Integer.parseInt(length));
  }

  public Family family() {
    return Family.of(address);
  }

  @Override
  public String toString() {
    return address.getHostAddress() + "/" + length;
  }
}
