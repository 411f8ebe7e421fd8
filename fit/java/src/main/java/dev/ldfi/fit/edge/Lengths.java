package dev.ldfi.fit.edge;

import java.util.function.DoubleUnaryOperator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * How long faults last: "2" (always that), "0.5..2" (any length between the two), "p50=0.8..p99=3" (lognormal); seconds,
 * as fit/protocol/lengths.py has them. A distribution tells the length below which a share of all lengths is.
 */
final class Lengths {
  private static final String NUMBER = "((?:0|[1-9][0-9]{0,3})(?:\\.[0-9]{0,2}[1-9])?)";
  private static final Pattern ONE = Pattern.compile(NUMBER);
  private static final Pattern EVEN = Pattern.compile(NUMBER + "\\.\\." + NUMBER);
  private static final Pattern LOGNORMAL = Pattern.compile("p50=" + NUMBER + "\\.\\.p99=" + NUMBER);
  private static final double SHORTEST = 0.001; // seconds
  private static final int BITS = 53; // as many as a double holds exactly

  private Lengths() {}

  /** Reads a distribution; null for what is none. */
  static DoubleUnaryOperator of(String text) {
    Matcher one = ONE.matcher(text);
    if (one.matches()) {
      double length = Double.parseDouble(one.group(1));
      return length >= SHORTEST ? share -> length : null;
    }
    Matcher even = EVEN.matcher(text);
    if (even.matches() && shorter(even) < longer(even)) {
      double shorter = shorter(even);
      double range = longer(even) - shorter;
      return share -> shorter + share * range;
    }
    Matcher lognormal = LOGNORMAL.matcher(text);
    if (lognormal.matches() && shorter(lognormal) < longer(lognormal) && shorter(lognormal) >= SHORTEST) {
      double median = shorter(lognormal);
      double width = StrictMath.log(longer(lognormal) / median);
      return share -> median * StrictMath.exp(quantile(share) / quantile(0.99) * width);
    }
    return null;
  }

  private static double shorter(Matcher found) {
    return Double.parseDouble(found.group(1));
  }

  private static double longer(Matcher found) {
    return Double.parseDouble(found.group(2));
  }

  /** A number above 0 and below 1, always the same one for a lot. */
  static double shareOf(String lot) {
    long number = Blake2b.number(lot) >>> (64 - BITS);
    return (number + 0.5) / (1L << BITS);
  }

  /**
   * That of the standard normal distribution, as M. J. Wichura approximates it: Algorithm AS 241 (PPND16), Applied
   * Statistics 37 (3), 1988.
   */
  private static double quantile(double p) {
    double q = p - 0.5;
    if (Math.abs(q) <= 0.425) {
      double r = 0.180625 - q * q;
      return polynomial(NEAR[0], r) * q / polynomial(NEAR[1], r);
    }
    double r = StrictMath.sqrt(-StrictMath.log(Math.min(p, 1 - p)));
    double x =
        r > 5
            ? polynomial(FAR[0], r - 5) / polynomial(FAR[1], r - 5)
            : polynomial(MIDDLE[0], r - 1.6) / polynomial(MIDDLE[1], r - 1.6);
    return Math.copySign(x, q);
  }

  /** One that is given by the coefficient of the highest power first. */
  private static double polynomial(double[] coefficients, double r) {
    double sum = 0;
    for (double each : coefficients) {
      sum = sum * r + each;
    }
    return sum;
  }

  private static final double[][] NEAR = {
    {
      2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
      13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608,
    },
    {
      5226.495278852854561, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867,
      5394.1960214247511077, 687.1870074920579083, 42.313330701600911252, 1,
    },
  };
  private static final double[][] MIDDLE = {
    {
      7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177, 1.27045825245236838258,
      3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959, 1.42343711074968357734,
    },
    {
      1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966,
      0.14810397642748007459, 0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187, 1,
    },
  };
  private static final double[][] FAR = {
    {
      2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386,
      0.026532189526576123093, 0.29656057182850489123, 1.7848265399172913358, 5.4637849111641143699,
      6.6579046435011037772,
    },
    {
      2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5,
      7.868691311456132591e-4, 0.0148753612908506148525, 0.13692988092273580531, 0.59983220655588793769, 1,
    },
  };
}
