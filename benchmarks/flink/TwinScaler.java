package org.apache.flink.autoscaler;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.JobStatus;
import org.apache.flink.autoscaler.config.AutoScalerOptions;
import org.apache.flink.autoscaler.event.AutoScalerEventHandler;
import org.apache.flink.autoscaler.metrics.CollectedMetricHistory;
import org.apache.flink.autoscaler.metrics.CollectedMetrics;
import org.apache.flink.autoscaler.metrics.EvaluatedMetrics;
import org.apache.flink.autoscaler.metrics.ScalingMetric;
import org.apache.flink.autoscaler.topology.JobTopology;
import org.apache.flink.autoscaler.topology.ShipStrategy;
import org.apache.flink.autoscaler.topology.VertexInfo;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.runtime.jobgraph.JobVertexID;

/**
 * Flink's evaluator and scaler on measurements of a chain of operators, one line per window.
 *
 * <p>Arguments: operators, most replicas, and in seconds metrics window, restart time, scale-down
 * interval and catch-up duration. A line holds the instant in ms and, for every operator, cumulated
 * records in and out, cumulated busy ms, load of a replica, queued records and parallelism. The
 * answer is a line of parallelisms. It is in Flink's package because the method that decides for
 * all vertices is visible there only.
 */
public final class TwinScaler {
    private static Instant now = Instant.EPOCH;

    public static void main(String[] args) throws Exception {
        int operators = Integer.parseInt(args[0]);
        int most = Integer.parseInt(args[1]);
        Duration window = Duration.ofSeconds(Long.parseLong(args[2]));
        Duration restart = Duration.ofSeconds(Long.parseLong(args[3]));
        Configuration conf = new Configuration();
        conf.set(AutoScalerOptions.AUTOSCALER_ENABLED, true);
        conf.set(AutoScalerOptions.SCALING_ENABLED, true);
        conf.set(AutoScalerOptions.METRICS_WINDOW, window);
        conf.set(AutoScalerOptions.STABILIZATION_INTERVAL, Duration.ZERO);
        conf.set(AutoScalerOptions.RESTART_TIME, restart);
        conf.set(
                AutoScalerOptions.CATCH_UP_DURATION, Duration.ofSeconds(Long.parseLong(args[5])));
        conf.set(
                AutoScalerOptions.SCALE_DOWN_INTERVAL,
                Duration.ofSeconds(Long.parseLong(args[4])));
        List<JobVertexID> ids = new ArrayList<>();
        for (int i = 0; i < operators; i++) {
            ids.add(new JobVertexID(i + 1, 0));
        }
        AutoScalerEventHandler<JobID, JobAutoScalerContext<JobID>> silent =
                (context, type, reason, message, key, interval) -> {};
        ScalingExecutor<JobID, JobAutoScalerContext<JobID>> executor =
                new ScalingExecutor<>(silent, null);
        var scaler = ScalingExecutor.class.getDeclaredField("jobVertexScaler");
        scaler.setAccessible(true);
        ((JobVertexScaler<?, ?>) scaler.get(executor)).setClock(new TwinClock());
        JobID job = new JobID();
        JobAutoScalerContext<JobID> context =
                new JobAutoScalerContext<>(job, job, JobStatus.RUNNING, conf, null, null);
        ScalingMetricEvaluator evaluator = new ScalingMetricEvaluator();
        SortedMap<Instant, CollectedMetrics> metrics = new TreeMap<>();
        Map<JobVertexID, SortedMap<Instant, ScalingSummary>> history = new HashMap<>();
        DelayedScaleDown delayed = new DelayedScaleDown();
        int[] asked = null;
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] cells = line.trim().split(" ");
            now = Instant.ofEpochMilli(Long.parseLong(cells[0]));
            int[] parallelism = new int[operators];
            CollectedMetrics measured = collected(ids, cells, parallelism);
            asked = asked == null ? parallelism.clone() : asked;
            boolean changing = !Arrays.equals(asked, parallelism);
            if (changing) {
                metrics.clear(); // Flink measures nothing while a job restarts
            } else {
                metrics.put(now, measured);
                metrics = new TreeMap<>(metrics.tailMap(now.minus(window)));
            }
            if (metrics.size() > 1) {
                JobTopology topology = topology(ids, parallelism, most);
                EvaluatedMetrics evaluated =
                        evaluator.evaluate(
                                conf,
                                new CollectedMetricHistory(topology, metrics, Instant.EPOCH),
                                restart);
                Map<JobVertexID, ScalingSummary> changes =
                        executor.computeScalingSummary(
                                context, evaluated, history, restart, topology, delayed);
                for (int i = 0; i < operators; i++) {
                    ScalingSummary change = changes.get(ids.get(i));
                    if (change != null) {
                        asked[i] = change.getNewParallelism();
                        history.computeIfAbsent(ids.get(i), id -> new TreeMap<>())
                                .put(now, change);
                    }
                }
                if (!changes.isEmpty()) {
                    metrics.clear(); // a restarted job starts a new metrics window
                    delayed.clearAll();
                }
            }
            StringBuilder answer = new StringBuilder();
            for (int p : asked) {
                answer.append(p).append(' ');
            }
            System.out.println(answer.toString().trim());
        }
    }

    private static CollectedMetrics collected(
            List<JobVertexID> ids, String[] cells, int[] parallelism) {
        Map<JobVertexID, Map<ScalingMetric, Double>> vertices = new LinkedHashMap<>();
        for (int i = 0; i < ids.size(); i++) {
            Map<ScalingMetric, Double> vertex = new HashMap<>();
            vertex.put(ScalingMetric.NUM_RECORDS_IN, Double.valueOf(cells[1 + 6 * i]));
            vertex.put(ScalingMetric.NUM_RECORDS_OUT, Double.valueOf(cells[2 + 6 * i]));
            vertex.put(ScalingMetric.ACCUMULATED_BUSY_TIME, Double.valueOf(cells[3 + 6 * i]));
            vertex.put(ScalingMetric.LOAD, Double.valueOf(cells[4 + 6 * i]));
            if (i == 0) {
                vertex.put(ScalingMetric.LAG, Double.valueOf(cells[5 + 6 * i]));
            }
            parallelism[i] = Integer.parseInt(cells[6 + 6 * i]);
            vertices.put(ids.get(i), vertex);
        }
        return new CollectedMetrics(vertices, new HashMap<>());
    }

    private static JobTopology topology(List<JobVertexID> ids, int[] parallelism, int most) {
        List<VertexInfo> vertices = new ArrayList<>();
        for (int i = 0; i < ids.size(); i++) {
            Map<JobVertexID, ShipStrategy> inputs =
                    i == 0 ? Map.of() : Map.of(ids.get(i - 1), ShipStrategy.REBALANCE);
            vertices.add(new VertexInfo(ids.get(i), inputs, parallelism[i], most));
        }
        return new JobTopology(vertices);
    }

    /** The twin's time. */
    private static final class TwinClock extends Clock {
        @Override
        public ZoneOffset getZone() {
            return ZoneOffset.UTC;
        }

        @Override
        public Clock withZone(java.time.ZoneId zone) {
            return this;
        }

        @Override
        public Instant instant() {
            return now;
        }
    }
}
