package io.opentelemetry.javaagent.ldfi;

import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;

/** What Redis says, and to which commands. */
public final class Redis {
  public static final String LOADING = "LOADING Redis is loading the dataset in memory";
  public static final String READ_ONLY = "READONLY You can't write against a read only replica.";

  /** What a replica refuses, of the commands that are used most: others are let through. */
  private static final Set<String> WRITING =
      new HashSet<>(
          Arrays.asList(
              ("APPEND COPY DECR DECRBY DEL EXPIRE EXPIREAT FLUSHALL FLUSHDB GEOADD GETDEL GETEX GETSET HDEL HINCRBY"
                      + " HINCRBYFLOAT HMSET HSET HSETNX INCR INCRBY INCRBYFLOAT LINSERT LMOVE LMPOP LPOP LPUSH LPUSHX"
                      + " LREM LSET LTRIM MSET MSETNX PERSIST PEXPIRE PEXPIREAT PFADD PFMERGE PSETEX RENAME RENAMENX"
                      + " RPOP RPOPLPUSH RPUSH RPUSHX SADD SDIFFSTORE SET SETBIT SETEX SETNX SETRANGE SINTERSTORE SMOVE"
                      + " SPOP SREM SUNIONSTORE UNLINK XACK XADD XDEL XTRIM ZADD ZINCRBY ZPOPMAX ZPOPMIN ZREM"
                      + " ZREMRANGEBYLEX ZREMRANGEBYRANK ZREMRANGEBYSCORE")
                  .split(" ")));

  private Redis() {}

  /** Whether a replica refuses a command. */
  public static boolean refuses(String command) {
    return WRITING.contains(command);
  }
}
