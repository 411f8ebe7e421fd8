package dev.ldfi.fit;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Makes every call of a method an injection point, {@code shop>method:price:com.shop.Prices}, where the extension of
 * OpenTelemetry's agent runs. Elsewhere it means nothing.
 */
@Documented
@Target(ElementType.METHOD)
@Retention(RetentionPolicy.RUNTIME)
public @interface FaultPoint {
  /** What such a call can end with, besides what the method says that it throws. */
  Class<? extends Throwable>[] raises() default {};
}
