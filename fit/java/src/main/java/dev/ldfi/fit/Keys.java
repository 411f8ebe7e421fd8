package dev.ldfi.fit;

import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/** The keys that sign failure contexts. Whoever lacks them injects nothing. No text shows a secret. */
public final class Keys {
  /** The environment variable that holds them, as in {@code k1:secret,k0:older}. */
  public static final String VARIABLE = "FIT_KEYS";

  static final int MAX_ID = 16;
  static final int MAC_LENGTH = 22; // characters of base64url
  private static final int MAC_BYTES = 16; // 128 bits of HMAC-SHA256; RFC 2104, section 5 allows it
  private static final int MIN_SECRET = 16; // characters
  private static final String ALGORITHM = "HmacSHA256";

  private final Map<String, SecretKeySpec> secrets;

  private Keys(Map<String, SecretKeySpec> secrets) {
    this.secrets = secrets;
  }

  /**
   * Reads ID:SECRET pairs, separated by commas. The first signs, all of them verify.
   *
   * @throws IllegalArgumentException where any of them is wrong, with the reason
   */
  public static Keys parse(String text) {
    Map<String, SecretKeySpec> secrets = new LinkedHashMap<>();
    for (String each : text.split(",")) {
      String pair = each.trim();
      if (!pair.isEmpty()) {
        add(secrets, pair);
      }
    }
    if (secrets.isEmpty()) {
      throw unreadable("it is empty; write ID:SECRET, or unset it");
    }
    return new Keys(secrets);
  }

  private static void add(Map<String, SecretKeySpec> secrets, String pair) {
    int colon = pair.indexOf(':');
    if (colon < 0 || !Words.isName(pair.substring(0, colon), MAX_ID)) {
      throw unreadable("key number " + (secrets.size() + 1) + " is not ID:SECRET");
    }
    String id = pair.substring(0, colon);
    String secret = pair.substring(colon + 1);
    if (secret.codePointCount(0, secret.length()) < MIN_SECRET) {
      throw unreadable("the secret of key " + id + " is shorter than " + MIN_SECRET + " characters");
    }
    if (secrets.put(id, new SecretKeySpec(secret.getBytes(StandardCharsets.UTF_8), ALGORITHM)) != null) {
      throw unreadable("key " + id + " stands there twice");
    }
  }

  private static IllegalArgumentException unreadable(String why) {
    return new IllegalArgumentException(VARIABLE + " cannot be read: " + why);
  }

  /** The ids of all keys; the first one signs. */
  public List<String> ids() {
    return Collections.unmodifiableList(new ArrayList<>(secrets.keySet()));
  }

  /** The MAC of a payload under the key that signs, the first. */
  public String sign(String payload) {
    return mac(payload, secrets.values().iterator().next());
  }

  /**
   * Whether mac signs the payload under the named key. Text is compared, in constant time: a decoded MAC
   * would let sixteen texts pass for one.
   */
  boolean verifies(String payload, String id, String mac) {
    SecretKeySpec secret = secrets.get(id);
    return secret != null && MessageDigest.isEqual(ascii(mac(payload, secret)), ascii(mac));
  }

  private static byte[] ascii(String text) {
    return text.getBytes(StandardCharsets.US_ASCII);
  }

  private static String mac(String payload, SecretKeySpec secret) {
    try {
      Mac mac = Mac.getInstance(ALGORITHM);
      mac.init(secret);
      byte[] digest = mac.doFinal(payload.getBytes(StandardCharsets.UTF_8));
      return Base64.getUrlEncoder().withoutPadding().encodeToString(Arrays.copyOf(digest, MAC_BYTES));
    } catch (GeneralSecurityException missing) {
      throw new IllegalStateException("every Java has " + ALGORITHM, missing);
    }
  }

  @Override
  public String toString() {
    return "Keys" + secrets.keySet();
  }
}
